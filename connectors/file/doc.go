// Package file is a sink that writes records into files, each exactly once.
//
// Every sink task writes one file per checkpoint, more when [Sink.RollBytes] or [Sink.RollInterval] ask for it. While it is
// written, and until its checkpoint has completed, a file has a name that begins with a dot; then it is renamed, once, to
//
//	JOB-CHECKPOINT-tTASK-NUMBER.jsonl      orders-00000042-t003-0000.jsonl
//
// with .txt for raw records, and .gz or .zst behind it when compressed. Names sort in the order of checkpoints. A file
// with such a name is complete and never changes again: whoever consumes it may move or delete it at once.
//
// # Two phases
//
// Prepare ends and syncs the open file, syncs the directory, and returns a [manifest]: which hidden file gets which name.
// The manifest is part of the checkpoint. Commit first writes a small hidden note that the commit of that checkpoint has
// begun, then renames; see [note] for why that order makes a repeated commit safe even after a consumer took the files.
// Restore commits again whatever the restored checkpoint holds, and removes all other hidden files of the same job. It
// knows them by their names, and never touches other files.
//
// # Raw records
//
// The raw format writes the value's bytes and a separator, a newline unless [Sink.Separator] says otherwise. Nothing is
// escaped: a value that contains the separator reads as several records. A null value reads as an empty one.
package file
