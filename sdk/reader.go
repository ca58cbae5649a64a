package sdk

import (
	"context"
	"log/slog"
)

// ReaderID is the index of a reader task, 0 to parallelism-1.
type ReaderID int

// CheckpointID numbers checkpoints and savepoints of a job, from 1, ascending across restarts.
type CheckpointID int64

// Reader reads the splits it was given. Except for Wakeup, all methods are called from one goroutine, the reader loop,
// and never overlap. Most authors embed base.Reader and never write this interface.
//
// A returned error, and a panic, ends this attempt; the engine makes a new reader from the last completed checkpoint, under
// its restart policy, unless the error is [ErrFatal].
type Reader[S Split] interface {
	// Open is called once, before anything else. ctx bounds the attempt to open, not the reader's life.
	Open(ctx context.Context) error
	// Poll does one bounded turn and never blocks. Records and the state that covers them change together: when Poll
	// returns, Snapshot covers exactly what was emitted.
	Poll(turn *Turn, out Output) (PollStatus, error)
	// AddSplits adds splits at their positions. A split that the reader already has is ignored.
	AddSplits(splits []S) error
	// Snapshot returns every unfinished split at its emitted position. The caller owns the slice.
	Snapshot(checkpoint CheckpointID) ([]S, error)
	// Wakeup makes a running Poll return soon. Any goroutine, any time, also before Open and after Close; idempotent.
	Wakeup()
	// Close releases everything and is called once, also after a failed Open. When it returns no goroutine is left.
	Close() error
}

// NoMoreSplitsHandler is an optional ability of a [Reader]: no AddSplits will follow in this attempt, except for splits
// returned by failed readers. A reader that ends must have it. It may be told twice.
type NoMoreSplitsHandler interface {
	NoMoreSplits() error
}

// CheckpointListener is an optional ability of a [Reader] or an [Enumerator], called on its loop. Notices may be late,
// repeated, out of order, or missing; a completed id covers all earlier ones.
type CheckpointListener interface {
	CheckpointComplete(id CheckpointID) error
	CheckpointAborted(id CheckpointID) error
}

// Pauser is an optional ability of a [Reader]: paused splits are not read, their position stays. Unknown ids are ignored.
type Pauser interface {
	PauseOrResume(pause, resume []SplitID) error
}

// Event is a message between reader and enumerator of one source. It is ephemeral: a failover of either side may lose it,
// so nothing may depend on its arrival that is not also reconstructed at registration.
type Event struct {
	Kind string
	Data VersionedBytes
}

// EventHandler is an optional ability of a [Reader]. The capability must declare SourceEvents.
type EventHandler interface {
	HandleEvent(event Event) error
}

// ReaderContext is what the engine lends to one reader attempt. All methods may be called from any goroutine and never
// block; after the attempt has ended they do nothing.
type ReaderContext interface {
	Reader() ReaderID
	Parallelism() int
	// Logger already carries job and reader.
	Logger() *slog.Logger
	Metrics() Metrics
	// NotifyAvailable makes the engine poll again. Spurious calls cost one empty turn; a lost one would stop the reader.
	NotifyAvailable()
	// RequestSplit tells the enumerator that this reader wants a split. Repeated calls coalesce.
	RequestSplit()
	// SendEvent sends an event to the enumerator. It reports false when the bounded queue is full; the event is then dropped.
	SendEvent(event Event) bool
}
