// Package sink is the loop of one sink task: one goroutine that owns one writer.
//
// It takes batches from its gate and gives them to the writer. When a barrier is aligned the writer prepares, or flushes
// when it cannot prepare, and the task acknowledges with everything that is prepared and not committed yet: what an aborted
// checkpoint prepared stays for the next one. When a checkpoint is durable the task commits, in order; a commit that fails
// is tried again and holds back the next checkpoint, and is never skipped.
package sink
