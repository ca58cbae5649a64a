// Package lifecycle holds the two state machines of a task as tables: the main one, and the schema change that runs beside
// it.
//
// The main machine of a task and of a job:
//
//	Created -> Restoring -> Running -> Draining -> Closed
//	              any but Closed    -> Cancelling -> Closed
//	              any but Closed    -> Failed     -> Closed
//
// The schema change is a sub-state of Running and Draining. It is bound to one schema checkpoint and one request epoch, and
// only these may advance it:
//
//	Idle -> Quiescing -> TriggerRequested -> WaitingEnd -> Idle
//
// Both are pure: [Machine.Step] and [Schema.Step] take an event and answer with the new state, or with an error that names
// state and event. A stale or repeated schema callback is no error: it is ignored and counted.
package lifecycle
