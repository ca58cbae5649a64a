// Package checkpoint takes checkpoints and keeps them.
//
// [Core] decides: it follows one checkpoint after the other from its trigger to its last commit. [Storage] keeps: the
// manifest of each completed checkpoint, and the numbers that may never be used twice. [FileStore] is the storage of a
// state directory, [MemoryStore] that of a job without one.
//
// # The state directory
//
//	lock                     who uses the directory; locked while somebody does
//	counters                 the job's name, and the first attempt and checkpoint numbers never given out
//	chk-00000042.ckpt        a checkpoint: the newest few are kept
//	savepoint-00000058.ckpt  a savepoint: kept until somebody deletes it
//	.chk-00000059.ckpt.tmp   being written, or left by a crash: ignored, and removed by the next run
//
// Checkpoints and savepoints share one sequence of numbers. A number is never used twice, also when its checkpoint never
// completed: sinks build the names of their hidden files from it.
//
// # The checkpoint file
//
// All numbers are little endian:
//
//	offset  bytes  what
//	     0      8  "PENSTOCK"
//	     8      2  version of the file format, 1
//	    10      6  zero
//	    16      8  length of the body
//	    24     32  SHA-256 of the bytes before this field and of the body
//	    56         body: a manifest frame of package protocol, with a version and a checksum of its own
//
// The header never changes in a later version, so that damage is told from a file that a newer build wrote.
//
// # What a write promises
//
// A file gets its name only when it is complete: it is written under a temporary name, synced, renamed, and then the
// directory is synced. A crash at any point leaves the previous newest checkpoint or the new one, never half a one. So a
// damaged file is never the trace of a crash but of a failing disk or a hand, and nothing is skipped for it: the newest
// file decides, and when it cannot be used [FileStore.Latest] fails with a [FileError] that names the file and what may
// be done. Going back to an older one is a person's decision.
//
// # Errors
//
//	ErrLocked        another process uses the directory ([LockedError] says which)
//	ErrOtherJob      the directory belongs to a job of another name
//	ErrNoCheckpoint  there is none yet
//	ErrUncertain     a write failed where nobody can tell whether it took place
//	*FileError       a file that is not what it should be
//	*DirError        an operation that the system refused: a full disk, missing rights
//
// What damaged a file also wraps [sdk.ErrCorrupt], and a newer version is an [sdk.UnknownVersionError].
package checkpoint
