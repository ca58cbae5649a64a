// Package coordinator is the loop that owns the enumerator: one goroutine for one coordinator epoch.
//
// Everything that concerns the enumerator goes through the loop's inbox and is served in order: registrations, split
// requests, events, snapshots, checkpoint callbacks, results of slow work, and timers. Slow work runs on [Workers], a bounded
// pool; its result comes back to the inbox and is dropped when the epoch is over.
//
// An assignment is remembered by the [Tracker] from the moment it is dispatched until a checkpoint that contains it has
// completed. Commands to readers go out through a dispatch gate per reader, which is closed between the coordinator's
// snapshot and the admission of that reader's barrier. So a split is in exactly one part of a cut: enumerator state,
// tracker, reader state, or the evidence that it ended.
//
// A new epoch first asks every reader to register, and only when all have answered does it reconcile their answers with the
// restored state, start the enumerator, and let it assign.
package coordinator
