// Package engine runs jobs: it joins a source and a sink, takes checkpoints, and restarts what fails.
//
//	job := engine.Job{
//		Name:        "orders",
//		Parallelism: 2,
//		Source:      engine.From(source), // an sdk.Source of any split type
//		Sink:        sink,                // an sdk.Sink
//		Checkpoint:  engine.Checkpoint{Dir: "state", Interval: 5 * time.Second},
//	}
//	err := engine.Run(ctx, job)
//
// [Run] returns after the last commit of a bounded job, or with a savepoint when ctx is cancelled. [Start] gives a handle
// instead, to take savepoints, to stop or to cancel.
//
// # What it guarantees
//
// Records that were committed by a sink with two-phase commit ([sdk.Committer]) are there exactly once, whatever was
// killed and restarted in between, as long as the state directory survives. Other sinks get every record at least once.
// Within one split, order is kept with the forward exchange.
//
// # How a failure is met
//
// A failing reader or sink task is restarted from the last completed checkpoint: alone with its partner when the
// exchange is forward, else all tasks together, because they are connected. A failing enumerator is restarted alone
// while readers go on. Every restart counts against the restart policy; an error marked with [sdk.ErrFatal] or
// [sdk.ErrIncompatibleState] fails the job at once.
package engine
