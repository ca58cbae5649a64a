// Package inspect explains checkpoints to people and programs: what a manifest holds, with split positions decoded by the
// connector's own codec.
//
// [View] is the checkpoint in plain fields; it is what --json prints, so its field names are part of the command's interface.
// [View.WriteTable] prints the same for reading.
package inspect
