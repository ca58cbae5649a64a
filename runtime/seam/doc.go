// Package seam lets tests stand between the parts of the engine, where nothing goes wrong in one process: between coordinator
// and readers, and at the moments in a command's or a checkpoint's life between two effects. A job that runs in production has
// no [Seams].
//
// The eleven [Point]s are those at which the death of a task is worst. In the order in which they are passed by an assignment:
//
//	coordinator  CommandCreated, OperationSend
//	mailbox      CapacityReserved
//	coordinator  AdmissionAcknowledged
//	reader       Applying, Applied, ApplyAcknowledged
//
// and by a checkpoint:
//
//	reader       Snapshotted, StateRegistered, TaskAcknowledged
//	job          CheckpointCompleted
//
// Package conformance/simulation uses all of it.
package seam
