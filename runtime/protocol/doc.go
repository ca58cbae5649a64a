// Package protocol holds the versioned formats of the engine: what a coordinator sends to a reader ([Envelope] and the
// payloads), what comes back ([Ack]), and what a checkpoint contains ([Manifest], with the engine's [Metadata] of each
// reader).
//
// # Commands
//
// A sender makes an envelope with [NewEnvelope], which encodes the payload and its checksum. Whoever receives it calls
// [Envelope.Validate], which decides from the header, the checksum and the size alone, and never decodes a payload: that is
// for the loop that applies the command, with [DecodeAddSplits] and its siblings. [CommandKind.Reserved] and
// [DurabilityOf] say how a kind is treated.
//
// # Frames
//
// Everything that stands alone on a wire or in a file is a frame, little endian:
//
//	offset  bytes  what
//	     0      4  "PNST"
//	     4      2  frame kind: 1 envelope, 2 ack, 3 metadata, 4 manifest, 5 counters
//	     6      2  version of that kind
//	     8      4  length of the body
//	    12      4  CRC-32C of the bytes before this field and of the body
//	    16         body: a Protocol Buffers message of wire/penstock.proto
//
// The frame itself never changes, so that every build can tell damage from a version it does not know: the checksum is
// looked at first. The versions of the kinds and of each payload count independently.
//
// # Obligations of a decoder
//
//  1. It never panics and never allocates more than a fixed multiple of the bytes it was given, whatever they are: lengths
//     and counts are checked before anything is built.
//  2. Bytes that an encoder cannot have written are an error that wraps [sdk.ErrCorrupt]: damage, cut-off, bytes left over,
//     fields it does not know, values out of range. A newer version is an [sdk.UnknownVersionError].
//  3. It keeps no reference to its input.
//
// An encoder checks what it made with the decoder's rules, so what was written can be read. Encoding is deterministic: equal
// values give equal bytes. Empty and nil slices are the same thing and come back as nil.
//
// testdata/wire at the repository's root holds files of every published version, which tests decode for ever.
package protocol
