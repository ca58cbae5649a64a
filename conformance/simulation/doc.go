// Package simulation runs the real engine through lives full of faults, all decided by one number, and checks what it
// leaves behind.
//
//	make sim SEEDS=1000                               # a thousand seeds, on all processors
//	go run ./conformance/simulation/sim -seed 84      # one of them again, step by step the same
//
// # What is simulated
//
// A [Plan] is derived from a seed: an input (splits, records, keys), and the lives of the process that reads it. Each life has
// its own parallelism, exchange, checkpoint interval and options, the bounds among them so small that all of them are hit;
// its own faults; and an end: a crash at a moment or in a given call, a stop with a savepoint, a cancel. [Run] lives them one
// after the other, inside a bubble of testing/synctest, where time is virtual: hours cost milliseconds.
//
// The engine is the real one. Around it are a source (connectors/fake, whose calls also fail, panic and hang here), a sink that
// outlives the process as a database does (the ledger), and a disk (checkpointtest.Disk) that is slow, full, broken, and loses
// after a crash what was not synced: renames whose directory was not, content that is cut or zeroed. A process that died keeps
// running for a moment, as nothing in Go can end it; every effect it tries to have is refused.
//
// Through the seams of the engine (runtime/seam) coordinator and readers are cut off from each other for a while: messages are
// lost, held back, or delivered twice. Tasks die at the eleven points between two effects. And the clock is wrong, and is set.
//
// # What is checked
//
// The checkers trust nothing that the engine says, but what they found on the disk and in the ledger:
//
//   - each record is visible once at the end, with its own content, and never twice on the way; with the forward exchange in
//     the order of its split;
//   - nothing is visible that no durable checkpoint holds, nothing that one holds is discarded;
//   - each checkpoint is a cut: no split in two places, each position exactly where the output of the same cut ends, the count of
//     records right;
//   - no split is with two live readers, none is given to one of them twice, and no reader is called by two goroutines;
//   - commands are applied in the order of their admission, which takes no time; none waits for a second turn; the second
//     delivery of one is never admitted;
//   - no number of an attempt or a checkpoint is used twice, over all lives; no older checkpoint comes back;
//   - no checkpoint is of another lane or capability; queues stay within their options;
//   - a job fails only for a reason that was injected; once faults end, it ends within minutes of virtual time; stopped or
//     cancelled, it lets go; and it leaves no goroutine in the bubble.
//
// # What a seed decides
//
// Everything about the plan. Faults are decided call by call from the seed, the life, the place, the task, and how often that
// task was at that place, so they do not depend on which of two tasks runs first. What Go decides is in which order
// goroutines run that are ready at the same moment of virtual time, and the order of its maps. Under `go test`, with the race
// detector and several processors, that is left to chance. The program sim decides it by the seed too, with a slightly edited
// runtime of Go: a seed is then the same program every time, and each has another order of goroutines.
//
// A failing plan is shrunken: whatever can be taken out while it still fails is taken out, and the report has the history of
// what is left and the command that runs it again. Every bug found becomes a test of its own in the package that had it, and its
// seed stays in regressions_test.go.
package simulation
