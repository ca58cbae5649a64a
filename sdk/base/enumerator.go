package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Keys of the scheduler. They are private to one enumerator.
const (
	keyDiscover = "base-discover"
	keyRetry    = "base-assign-retry"
	keyFail     = "base-enumerator"
)

// assignRetry is how long a refused assignment waits when no checkpoint completes before.
const assignRetry = time.Second

// Enumerator discovers splits, now and then or once, and assigns each once; make it with [NewEnumerator], and embed it where
// a source has more to say. It is an [sdk.Enumerator] with the abilities [sdk.FinishedHandler] and
// [sdk.CheckpointListener]. All methods belong to the coordinator loop.
//
// It first assigns when every reader of the parallelism has registered once: before that it cannot know what a reader
// still holds from before a restart, nor balance. Returned splits go out again at once, at the position they came back with.
type Enumerator[S sdk.Split] struct {
	ctx    sdk.EnumeratorContext[S]
	cfg    EnumeratorConfig[S]
	ledger *ledger[S]

	registered map[sdk.ReaderID]bool // in this epoch
	told       map[sdk.ReaderID]bool // no more splits, since it registered last
	running    bool                  // a discovery
	again      bool                  // Trigger was called meanwhile
	failures   int                   // discoveries in a row
	closed     bool

	discoveries, discoveryFailures sdk.Counter
	known, unassigned              sdk.Gauge
}

// The enumerator has these abilities whatever its type argument is.
var (
	_ sdk.Enumerator[sdk.Split]      = (*Enumerator[sdk.Split])(nil)
	_ sdk.FinishedHandler[sdk.Split] = (*Enumerator[sdk.Split])(nil)
	_ sdk.CheckpointListener         = (*Enumerator[sdk.Split])(nil)
)

// NewEnumerator makes an enumerator from restored state, or from nil for a new job. It starts nothing. A state of another
// identity is [sdk.ErrIncompatibleState], one that does not parse [sdk.ErrCorrupt].
func NewEnumerator[S sdk.Split](ctx sdk.EnumeratorContext[S], state *sdk.VersionedBytes, cfg EnumeratorConfig[S]) (*Enumerator[S], error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("base.NewEnumerator: %w", err)
	}
	if cfg.Assign == nil {
		cfg.Assign = LeastLoaded[S]
	}
	e := &Enumerator[S]{
		ctx: ctx, cfg: cfg,
		ledger:     newLedger[S](ctx.Parallelism()),
		registered: make(map[sdk.ReaderID]bool),
		told:       make(map[sdk.ReaderID]bool),
	}
	if state != nil {
		restored, identity, err := decodeState(*state, ctx.Parallelism(), ctx.SplitCodec())
		if err != nil {
			return nil, err
		}
		if err := checkIdentity(identity, cfg.Identity, cfg.Compatible); err != nil {
			return nil, err
		}
		e.ledger = restored
	}
	m := ctx.Metrics()
	e.discoveries = m.Counter("discoveries", "{discovery}", "Discoveries that were recorded.")
	e.discoveryFailures = m.Counter("discovery_failures", "{discovery}", "Discoveries that failed and are tried again.")
	e.known = m.Gauge("known_splits", "{split}", "Splits that were discovered and not forgotten, finished ones included.")
	e.unassigned = m.Gauge("unassigned_splits", "{split}", "Splits that wait for a reader or a checkpoint.")
	return e, nil
}

// Start implements [sdk.Enumerator]. It starts the first discovery of this epoch, unless the restored state needs none.
func (e *Enumerator[S]) Start() error {
	e.discover()
	return nil
}

// AddReader implements [sdk.Enumerator].
func (e *Enumerator[S]) AddReader(reader sdk.ReaderInfo) error {
	if err := e.ledger.registered(reader); err != nil {
		return err
	}
	e.registered[reader.ID] = true
	e.told[reader.ID] = false
	return e.distribute()
}

// ReturnSplits implements [sdk.Enumerator].
func (e *Enumerator[S]) ReturnSplits(splits []S) error {
	for _, split := range splits {
		if err := checkSplitID(split.SplitID()); err != nil {
			return fmt.Errorf("returned splits: %w", err)
		}
	}
	if ignored := e.ledger.returned(splits); len(ignored) > 0 {
		e.ctx.Logger().Warn("splits were returned that a completed checkpoint holds as finished; they stay finished", "splits", ignored)
	}
	return e.distribute()
}

// SplitsFinished implements [sdk.FinishedHandler].
func (e *Enumerator[S]) SplitsFinished(splits []S) error {
	e.ledger.ended(splits)
	return e.distribute()
}

// CheckpointComplete implements [sdk.CheckpointListener].
func (e *Enumerator[S]) CheckpointComplete(id sdk.CheckpointID) error {
	e.ledger.completed(id)
	if e.ledger.uncontained() { // discovered after its snapshot
		e.requestCheckpoint()
	}
	return e.distribute()
}

// CheckpointAborted implements [sdk.CheckpointListener].
func (e *Enumerator[S]) CheckpointAborted(sdk.CheckpointID) error {
	if e.ledger.gated > 0 {
		e.requestCheckpoint()
	}
	return e.distribute()
}

// Snapshot implements [sdk.Enumerator].
func (e *Enumerator[S]) Snapshot(id sdk.CheckpointID) (sdk.VersionedBytes, error) {
	state, err := encodeState(e.ledger, e.cfg.Identity, e.ctx.SplitCodec())
	if err != nil {
		return sdk.VersionedBytes{}, err
	}
	e.ledger.snapshotted(id)
	return state, nil
}

// Close implements [sdk.Enumerator].
func (e *Enumerator[S]) Close() error {
	e.closed = true
	e.ctx.Cancel(keyDiscover)
	e.ctx.Cancel(keyRetry)
	return nil
}

// Trigger starts a discovery now, or right after the one that is running. It does nothing when the last discovery has been
// recorded: with Bounded or without an Interval, readers have been promised that no more splits follow.
func (e *Enumerator[S]) Trigger() {
	if e.running {
		e.again = true
		return
	}
	e.discover()
}

// complete reports that no discovery will follow.
func (e *Enumerator[S]) complete() bool {
	return e.ledger.firstDone && (e.cfg.Bounded || e.cfg.Interval == 0)
}

func (e *Enumerator[S]) discover() {
	if e.closed || e.running || e.complete() {
		return
	}
	e.running, e.again = true, false
	round := e.ledger.round()
	sdk.CallAsync(e.ctx, keyDiscover,
		func(ctx context.Context) ([]S, error) { return e.cfg.Discover(ctx, round) },
		e.discovered,
		sdk.CallOptions{Timeout: e.cfg.Timeout})
}

// discovered is back on the loop. It never overlaps a second discovery: one that was triggered meanwhile starts only now,
// because its Round has to know what this one found.
func (e *Enumerator[S]) discovered(splits []S, err error) {
	if e.closed {
		return
	}
	e.running = false
	var found, removed []sdk.SplitID
	if err == nil {
		found, removed, err = e.ledger.discovered(splits, e.cfg.Durable)
	}
	if err != nil {
		e.failed(err)
		return
	}
	e.failures = 0
	e.discoveries.Add(1)
	if len(found) > 0 {
		e.ctx.Logger().Info("new splits", "count", len(found), "first", found[0])
	}
	if e.ledger.uncontained() {
		e.requestCheckpoint()
	}
	if len(removed) > 0 {
		e.ctx.Logger().Warn("splits do not exist any more", "count", len(removed), "first", removed[0])
		if e.cfg.OnRemoved != nil {
			e.cfg.OnRemoved(removed)
		}
	}
	if err := e.distribute(); err != nil {
		e.fail(err)
		return
	}
	e.next(e.cfg.Interval)
}

// failed decides between another try and the end of the epoch.
func (e *Enumerator[S]) failed(err error) {
	e.failures++
	e.discoveryFailures.Add(1)
	limit := e.cfg.failAfter(e.ledger.firstDone)
	if errors.Is(err, sdk.ErrFatal) || errors.Is(err, sdk.ErrIncompatibleState) || limit > 0 && e.failures >= limit {
		e.fail(fmt.Errorf("discover splits, try %d: %w", e.failures, err))
		return
	}
	pause := discoveryPause(e.failures)
	e.ctx.Logger().Warn("discovery failed, readers go on with what they have", "error", err, "try", e.failures, "again_in", pause)
	e.next(pause)
}

// next plans the next discovery. A trigger that came while one was running takes the place of the pause.
func (e *Enumerator[S]) next(pause time.Duration) {
	switch {
	case e.complete():
	case e.again:
		e.discover()
	default:
		e.ctx.Schedule(keyDiscover, pause, e.discover)
	}
}

// fail ends the epoch from a callback, which cannot return an error.
func (e *Enumerator[S]) fail(err error) {
	e.ctx.Call(keyFail, func(context.Context) (any, error) { return nil, err }, func(any, error) {},
		sdk.CallOptions{OnFailure: sdk.FailCoordinator})
}

// requestCheckpoint asks for the checkpoint that gated splits wait for.
func (e *Enumerator[S]) requestCheckpoint() {
	if !e.ctx.RequestCheckpoint() {
		e.ledger.open(func(*entry[S]) bool { return true })
	}
}

// distribute does what the ledger plans, as far as the engine takes it, and says when no more will follow.
func (e *Enumerator[S]) distribute() error {
	defer e.measure()
	if len(e.registered) < e.ctx.Parallelism() {
		return nil
	}
	readers := e.ctx.Readers()
	plan, err := e.ledger.plan(e.cfg.Assign, readers)
	if err != nil {
		return err
	}
	for _, a := range plan {
		err := e.assign(a)
		if errors.Is(err, sdk.ErrBackpressure) {
			// The next completed checkpoint makes room. The timer is for jobs in which it is long in coming.
			e.ctx.Schedule(keyRetry, assignRetry, e.retry)
			return nil
		}
		if err != nil {
			return fmt.Errorf("assign %d splits to reader %d: %w", len(a.splits), a.reader, err)
		}
	}
	return e.tellNoMore(readers)
}

// assign hands splits over, in halves of halves when the engine refuses them together: its bound may be smaller than the
// whole, which would then never be taken.
func (e *Enumerator[S]) assign(a assignment[S]) error {
	err := e.ctx.Assign(a.reader, a.splits)
	if errors.Is(err, sdk.ErrBackpressure) && len(a.splits) > 1 {
		first, second := a.halves()
		if err := e.assign(first); err != nil {
			return err
		}
		return e.assign(second)
	}
	if err == nil {
		e.ledger.took(a)
	}
	return err
}

func (e *Enumerator[S]) retry() {
	if e.closed {
		return
	}
	if err := e.distribute(); err != nil {
		e.fail(err)
	}
}

// tellNoMore tells each reader once for each of its registrations, also one that never got a split.
func (e *Enumerator[S]) tellNoMore(readers []sdk.ReaderID) error {
	if !e.complete() || e.ledger.unassigned() > 0 {
		return nil
	}
	for _, r := range readers {
		if e.told[r] {
			continue
		}
		if err := e.ctx.NoMoreSplits(r); err != nil {
			return fmt.Errorf("tell reader %d that no more splits follow: %w", r, err)
		}
		e.told[r] = true
	}
	return nil
}

func (e *Enumerator[S]) measure() {
	e.known.Set(float64(len(e.ledger.entries)))
	e.unassigned.Set(float64(e.ledger.unassigned()))
}
