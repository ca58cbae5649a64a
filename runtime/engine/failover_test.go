package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// moody is a fake source whose enumerators fail on command.
type moody struct {
	*fake.Source
	fail func(method string) error
}

type moodyEnumerator struct {
	sdk.Enumerator[fake.Split]
	fail func(method string) error
}

func (m *moody) NewEnumerator(ctx sdk.EnumeratorContext[fake.Split], state *sdk.VersionedBytes) (sdk.Enumerator[fake.Split], error) {
	e, err := m.Source.NewEnumerator(ctx, state)
	return &moodyEnumerator{e, m.fail}, err
}

func (e *moodyEnumerator) Snapshot(id sdk.CheckpointID) (sdk.VersionedBytes, error) {
	if err := e.fail("Snapshot"); err != nil {
		return sdk.VersionedBytes{}, err
	}
	return e.Enumerator.Snapshot(id)
}

func (e *moodyEnumerator) CheckpointComplete(id sdk.CheckpointID) error {
	if err := e.fail("CheckpointComplete"); err != nil {
		return err
	}
	return e.Enumerator.(sdk.CheckpointListener).CheckpointComplete(id)
}

func (e *moodyEnumerator) CheckpointAborted(id sdk.CheckpointID) error {
	return e.Enumerator.(sdk.CheckpointListener).CheckpointAborted(id)
}

func (e *moodyEnumerator) SplitsFinished(splits []fake.Split) error {
	return e.Enumerator.(sdk.FinishedHandler[fake.Split]).SplitsFinished(splits)
}

func TestFailingCoordinatorsLoseAndRepeatNothingWhileReadersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 6, RecordsPerSplit: 3000, ChunkSize: 50, Faults: fake.Faults{FetchLatency: time.Millisecond}}
		calls := 0
		src := &moody{Source: source(t, cfg), fail: func(string) error {
			if calls++; calls%3 == 0 && calls < 40 {
				return errors.New("enumerator failed")
			}
			return nil
		}}
		l := newLedger()
		metrics := telemetry.NewRegistry("coord", telemetry.Options{})
		run(t, engine.Job{
			Name: "coord", Parallelism: 3, Source: engine.From(src), Sink: l, Metrics: metrics,
			Checkpoint: engine.Checkpoint{Interval: 5 * time.Millisecond}, Options: quick(), Logger: logger(t),
		})
		l.exactlyOnce(t, cfg, 6, true)
		j := metrics.Job()
		if j.Restarts[telemetry.RestartCoordinator].Value() == 0 || j.Restarts[telemetry.RestartReader].Value() != 0 {
			t.Errorf("%d coordinator and %d reader restarts", j.Restarts[telemetry.RestartCoordinator].Value(), j.Restarts[telemetry.RestartReader].Value())
		}
	})
}

func TestReaderAndCoordinatorFailTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 9, RecordsPerSplit: 2000, ChunkSize: 50, Faults: fake.Faults{
			FetchLatency: time.Millisecond,
			Script: []fake.Fault{
				{Kind: fake.FailEmit, Split: 1, Record: 300, Times: 3},
				{Kind: fake.FailFetch, Split: 2, Record: 900, Times: 4},
				{Kind: fake.FailEmit, Split: 7, Record: 1999, Times: 3},
				{Kind: fake.PanicEmit, Split: 8, Record: 3, Times: 2},
			},
		}}
		calls := 0
		src := &moody{Source: source(t, cfg), fail: func(string) error {
			if calls++; calls%4 == 0 && calls < 60 {
				panic("enumerator panicked")
			}
			return nil
		}}
		l := newLedger()
		run(t, engine.Job{
			Name: "both", Parallelism: 4, Source: engine.From(src), Sink: l,
			Checkpoint: engine.Checkpoint{Interval: 7 * time.Millisecond}, Options: quick(), Logger: logger(t),
		})
		l.exactlyOnce(t, cfg, 9, false)
	})
}

// A poll that never returns costs one reader its attempt, not the job: the watchdog wakes it at the hard limit and
// abandons it at the cancellation timeout.
func TestAStuckPollIsWokenThenAbandonedAndFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 2, RecordsPerSplit: 500, ChunkSize: 50, Faults: fake.Faults{
			FetchLatency: time.Millisecond,
			Script: []fake.Fault{
				{Kind: fake.StuckPoll, Split: 0, Record: 100, Times: 1},
				{Kind: fake.DeafPoll, Split: 1, Record: 200, Times: 1},
			},
		}}
		src := source(t, cfg)
		l := newLedger()
		metrics := telemetry.NewRegistry("stuck", telemetry.Options{})
		start := time.Now()
		run(t, engine.Job{
			Name: "stuck", Parallelism: 2, Source: engine.From(src), Sink: l, Metrics: metrics,
			Checkpoint: engine.Checkpoint{Interval: 20 * time.Millisecond}, Options: quick(), Logger: logger(t),
		})
		l.exactlyOnce(t, cfg, 2, false)
		if took := time.Since(start); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("the job took %s; the stuck poll is given up after 30 s", took)
		}
		if n := metrics.Job().Restarts[telemetry.RestartReader].Value(); n != 1 {
			t.Errorf("%d reader restarts, want 1: the woken one goes on", n)
		}
		src.Release() // the abandoned goroutine leaves and changes nothing
		synctest.Wait()
		l.exactlyOnce(t, cfg, 2, false)
	})
}

// While the sink hangs, controls are served: a stop request reaches the readers, a cancel ends the job, and nothing spins.
func TestAStuckSinkBlocksNoControl(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Keyed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var stuck atomic.Bool
				l := newLedger()
				l.onWrite = func(ctx context.Context, _, _ int) error {
					if stuck.Load() {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				}
				metrics := telemetry.NewRegistry("stuck-sink", telemetry.Options{})
				h, err := engine.Start(t.Context(), engine.Job{
					Name: "stuck-sink", Parallelism: 2, Source: engine.From(source(t, fake.Config{Splits: 2, RecordsPerSecond: 100_000})), Sink: l,
					Exchange: kind, Metrics: metrics, Checkpoint: engine.Checkpoint{Interval: engine.Never}, Options: quick(), Logger: logger(t),
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
				stuck.Store(true)
				time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of the bubble
				p := metrics.Snapshot()
				if p.Blocked != 2 {
					t.Errorf("%d readers are shown as blocked, want 2", p.Blocked)
				}
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
				if q := metrics.Snapshot(); q.Records != p.Records {
					t.Errorf("readers went on reading without credit: %d, then %d", p.Records, q.Records)
				}
				start := time.Now()
				h.Cancel()
				res, err := h.Wait(t.Context())
				if err != nil || res.Outcome != engine.Cancelled {
					t.Errorf("result %+v, %v", res, err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("cancel took %s", took)
				}
			})
		})
	}
}

// A stop does not wait for the back-off of a task that keeps failing: after a few tries at once the job ends, and says why.
func TestStopWhileASinkKeepsFailing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		l := newLedger()
		full := errors.New("no space left")
		l.onWrite = func(context.Context, int, int) error {
			if failing.Load() {
				return full
			}
			return nil
		}
		o := engine.DefaultOptions()
		h, err := engine.Start(t.Context(), engine.Job{
			Name: "stop-failing", Source: engine.From(source(t, fake.Config{RecordsPerSecond: 1000})), Sink: l,
			Checkpoint: engine.Checkpoint{Interval: 100 * time.Millisecond}, Options: &o,
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		failing.Store(true)
		time.Sleep(20 * time.Second) //nolint:forbidigo // the clock of the bubble
		start := time.Now()
		h.Stop()
		_, err = h.Wait(t.Context())
		if !errors.Is(err, engine.ErrSavepoint) || !errors.Is(err, full) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("stopping took %s", took)
		}
	})
}

// All tasks restart while a checkpoint waits for its commits. One task restores the whole sink: until it has, nothing is
// committed, however soon the others are open again.
func TestAWholeRestartCommitsBeforeTheCheckpointIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 6, RecordsPerSplit: 100, KeyCount: 50}
		l := newLedger()
		var failed atomic.Bool
		l.onCommit = func(task int) error {
			if task == 1 || failed.Load() { // the first task has committed when the second fails; after that it restores slowly
				time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			}
			if task == 1 && !failed.Swap(true) {
				return errors.New("commit refused")
			}
			return nil
		}
		o := quick()
		o.CommitAttempts = 1
		res := run(t, engine.Job{
			Name: "slow-restore", Parallelism: 2, Source: engine.From(source(t, cfg)), Sink: l, Exchange: exchange.Keyed, Options: o,
			Checkpoint: engine.Checkpoint{Interval: engine.Never}, Logger: logger(t),
			Listener: engine.Listener{CheckpointDone: func(m *protocol.Manifest, _ time.Duration) {
				if n := int64(len(l.visible())); n != m.Records {
					t.Errorf("checkpoint %d is done with %d records, and %d are visible", m.ID, m.Records, n)
				}
			}},
		})
		if !failed.Load() || res.Outcome != engine.Finished {
			t.Errorf("result %+v, a commit failed: %t", res, failed.Load())
		}
		l.exactlyOnce(t, cfg, 6, false)
	})
}
