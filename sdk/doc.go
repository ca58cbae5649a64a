// Package sdk is the contract between connectors and an engine. It imports nothing but the standard library.
//
// # Who writes what
//
// A source is a value of [Source]: it says what it can ([Capability]), how its splits are encoded ([Codec]), and makes
// enumerators and readers. An [Enumerator] finds splits and assigns them; there is one at a time. A [Reader] reads the
// splits it was given; there are as many as the job's parallelism. Most authors do not write these two but embed the
// managed ones of package base.
//
// A sink is a value of [Sink] that makes one [Writer] per task. A writer that is also a [Committer] makes the sink exactly
// once.
//
// # How records travel
//
// A [Reader] emits during Poll, within the budgets of its [Turn], into an [Output]: copies with Emit, or a [View] of what
// its client library holds anyway. A turn's output reaches a writer as one [Batch].
//
// # What keeps a job correct
//
//  1. One goroutine calls a reader, one an enumerator, one a writer; none of them needs a lock for its own state.
//  2. A split ([Split]) carries its position. Records and the position that covers them change in the same turn.
//  3. State is encoded with a version ([VersionedBytes]) and stays readable; what cannot be read is an error that says so.
//  4. Errors and panics end the attempt, and the engine makes a new one from the last completed checkpoint; [Fatal] says
//     that this cannot help.
package sdk
