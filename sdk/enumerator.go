package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Enumerator discovers splits and assigns them. All methods are called from one goroutine, the coordinator loop, and
// never overlap. They never block: slow work goes through [CallAsync].
//
// A returned error, and a panic, ends this epoch; the engine starts a new enumerator from the last completed checkpoint, under
// its restart policy, unless the error is [ErrFatal]. Readers keep running meanwhile.
type Enumerator[S Split] interface {
	// Start is called once, before every other method but Close. With restored state AddReader and ReturnSplits follow
	// for what the readers hold and lost.
	Start() error
	// AddReader says that a reader attempt has registered; splits may be assigned to it from now on. For a reader that
	// was known before it is a new attempt, to which no-more-splits must be said again.
	//
	// A new enumerator learns one reader after the other what they hold, so until it knows as many as
	// [EnumeratorContext.Parallelism] says, a split that looks free may be with one it has not heard of: assign discovered splits
	// only then, as the base enumerator does. Split requests are not served before.
	AddReader(reader ReaderInfo) error
	// ReturnSplits gives back splits that were assigned but are held by no reader, after a failover or a restore with
	// another parallelism. They are to be assigned again, at their position as given. The enumerator owns the slice.
	ReturnSplits(splits []S) error
	// Snapshot returns the state. Splits returned or discovered but not assigned must be in it; assigned ones must not
	// be assigned again from it.
	Snapshot(checkpoint CheckpointID) (VersionedBytes, error)
	// Close releases everything and is called once, also after a failed Start.
	Close() error
}

// ReaderInfo describes a registered reader attempt.
//
// The splits it names are owned: an enumerator that still has one of them unassigned, because its own state is older, drops
// it there and never assigns it again unless it is returned.
type ReaderInfo struct {
	ID       ReaderID
	Splits   []SplitID // what it already holds, after a restore or a failover of the coordinator; read only
	Finished []SplitID // what it has read to the end; no completed checkpoint may contain that yet; read only
}

// SplitRequestHandler is an optional ability of an [Enumerator]: a reader asked for a split.
type SplitRequestHandler interface {
	HandleSplitRequest(reader ReaderID) error
}

// FinishedHandler is an optional ability of an [Enumerator]: the splits ended, and a completed checkpoint contains that. It
// may be told twice of the same split.
type FinishedHandler[S Split] interface {
	SplitsFinished(splits []S) error
}

// EnumeratorEventHandler is an optional ability of an [Enumerator] whose capability declares SourceEvents.
type EnumeratorEventHandler interface {
	HandleReaderEvent(reader ReaderID, event Event) error
}

// EnumeratorContext is what the engine lends to one enumerator. Its methods are called on the coordinator loop only and
// never block; after the epoch has ended they do nothing.
type EnumeratorContext[S Split] interface {
	Scheduler
	Parallelism() int
	// Readers lists the registered readers in ascending order.
	Readers() []ReaderID
	// Assign hands splits to a registered reader. [ErrBackpressure] means that the engine holds as many uncheckpointed
	// assignments as it may: nothing was taken; try again after the next CheckpointComplete. An unregistered reader is an error.
	Assign(reader ReaderID, splits []S) error
	// NoMoreSplits says that this reader gets none but returned ones from now on. After splits were returned and assigned
	// again it is to be said again, to the readers that have registered since: the job ends when every reader was told
	// and has read everything.
	NoMoreSplits(reader ReaderID) error
	// SendEvent sends an event to a reader. It reports false when it could not be queued.
	SendEvent(reader ReaderID, event Event) bool
	// RequestCheckpoint asks for a checkpoint soon, outside of the interval. It reports false when the job takes no
	// checkpoints, so that waiting for one would never end.
	RequestCheckpoint() bool
	// SplitCodec is the source's codec.
	SplitCodec() Codec[S]
	Logger() *slog.Logger
	Metrics() Metrics
}

// Scheduler runs work beside the coordinator loop. Its methods are called on the coordinator loop and never block.
type Scheduler interface {
	// Call runs work on a bounded pool of the process and then done on the coordinator loop, for a value and an error alike.
	// done is never called after the epoch ended. Prefer the typed [CallAsync].
	Call(key string, work func(ctx context.Context) (any, error), done func(value any, err error), options CallOptions)
	// Schedule runs task on the coordinator loop after delay. A second Schedule of a key replaces the first.
	Schedule(key string, delay time.Duration, task func())
	// Cancel drops a scheduled task and cancels a running call of that key; its done is not called.
	Cancel(key string)
}

// Overlap says what happens to a Call whose key is already running.
type Overlap uint8

const (
	// CoalesceOne runs the newest such call once, after the running one. The default.
	CoalesceOne Overlap = iota
	// SkipIfRunning drops the new call.
	SkipIfRunning
)

// OnFailure says what an error of a Call does.
type OnFailure uint8

const (
	// Report gives the error to done. The default.
	Report OnFailure = iota
	// FailCoordinator ends the coordinator epoch with the error; done is not called.
	FailCoordinator
)

// CallOptions of a [Scheduler.Call]. The zero value is ready to use.
type CallOptions struct {
	Delay     time.Duration // before work starts; zero starts at once
	Timeout   time.Duration // of work; zero means one minute
	Overlap   Overlap
	OnFailure OnFailure
}

// CallAsync runs work on the engine's bounded worker pool and then done on the coordinator loop. work gets immutable input
// by closure and must not touch the enumerator; ctx ends at the timeout and at the end of the epoch.
func CallAsync[T any](s Scheduler, key string, work func(context.Context) (T, error), done func(T, error), options CallOptions) {
	s.Call(key, func(ctx context.Context) (any, error) {
		return work(ctx)
	}, func(value any, err error) {
		v, ok := value.(T)
		if !ok && err == nil && value != nil {
			err = fmt.Errorf("call %s: result is a %T", key, value)
		}
		done(v, err)
	}, options)
}
