package sdk

import (
	"context"
	"log/slog"
)

// Sink is one configured sink value. NewWriter does no I/O; it may be called from any goroutine.
type Sink interface {
	// Name is the name in job files, for example "file".
	Name() string
	// NewWriter makes the writer of one sink task.
	NewWriter(ctx WriterContext) (Writer, error)
}

// WriterContext is what the engine lends to one writer.
type WriterContext interface {
	// Job is the job's name: part of the names by which a sink finds what an earlier run left.
	Job() string
	// Task is the index of the sink task, 0 to Parallelism-1.
	Task() int
	Parallelism() int
	// Attempt is unique among all writers this job ever had, so names built from it never collide.
	Attempt() int64
	// Restored is the checkpoint that this writer goes on from, 0 for a job that starts anew. What the sink committed for
	// a later one is not known to this run: its records will be read again.
	Restored() CheckpointID
	Logger() *slog.Logger
	Metrics() Metrics
}

// Writer writes the records of one sink task. All methods are called from one goroutine, the sink loop, and never
// overlap. ctx ends when the job is cancelled. An error restarts from the last completed checkpoint, unless it is [ErrFatal].
type Writer interface {
	// Open is called once before anything else but Restore of a [Committer], which comes after it.
	Open(ctx context.Context) error
	// Write may block. The batch belongs to the writer only during the call.
	Write(ctx context.Context, batch *Batch) error
	// Flush makes everything written so far durable. It is called at a barrier when the writer is no [Committer]: at
	// least once needs no more than this.
	Flush(ctx context.Context) error
	// Close releases everything and discards what was written since the last Prepare. It is called once, also after a
	// failed Open; ctx bounds it.
	Close(ctx context.Context) error
}

// Committer is an optional ability of a [Writer], and what makes a sink exactly once: two-phase commit.
type Committer interface {
	// Prepare makes everything written since the last Prepare durable but invisible. The returned bytes are kept in the
	// checkpoint; the engine owns them. No bytes mean that there is nothing to commit.
	Prepare(ctx context.Context, checkpoint CheckpointID) ([]byte, error)
	// Commit makes it visible, after the checkpoint completed. It is idempotent: after a crash it is called again, by
	// another writer. An error is retried with back-off and holds back the next checkpoint; it is never skipped.
	Commit(ctx context.Context, prepared []byte) error
	// Restore is called on one writer of the sink, after Open and before any Write of any task, also for a new job with
	// nothing prepared: commit all of prepared again, then discard whatever else an earlier run of this job left. The
	// writer finds that by its own names, whatever number of tasks the earlier run had.
	Restore(ctx context.Context, prepared [][]byte) error
}

// Discarder is an optional ability of a [Committer]: discard what was prepared for a checkpoint that never completed, when
// one task is restarted while the others go on. Without it such remains stay invisible until the next Restore.
type Discarder interface {
	Discard(ctx context.Context, prepared []byte) error
}
