package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/sdk"
)

func source(t *testing.T, cfg fake.Config) *fake.Source {
	t.Helper()
	s, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func quick() *engine.Options {
	o := engine.DefaultOptions()
	o.RestartLimit = 1000
	o.RestartInitial, o.RestartMax = time.Millisecond, 10*time.Millisecond
	return &o
}

func logger(t *testing.T) *zap.Logger {
	return zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
}

// run runs a job to its end inside a bubble.
func run(t *testing.T, job engine.Job) engine.Result {
	t.Helper()
	h, err := engine.Start(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// STIP reference implementation (seatunnel PR 11557): the loop was not driven while the job closed, so the final barrier was never
// drained and every bounded job hung.
func TestBoundedJobEndsAfterItsLastCommit(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Rebalance, exchange.Keyed} {
		for _, p := range []int{1, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", kind, p), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cfg := fake.Config{Splits: 4, RecordsPerSplit: 1000, KeyCount: 7, Copied: p != 3}
					l := newLedger()
					res := run(t, engine.Job{
						Name: "bounded", Parallelism: p, Source: engine.From(source(t, cfg)), Sink: l, Exchange: kind,
						Options: quick(), Logger: logger(t),
					})
					if res.Outcome != engine.Finished || res.Records != 4000 {
						t.Errorf("result %+v", res)
					}
					l.exactlyOnce(t, cfg, 4, kind == exchange.Forward)
				})
			})
		}
	}
}

func TestFailingReadersLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Rebalance, exchange.Keyed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := fake.Config{Splits: 6, RecordsPerSplit: 3000, KeyCount: 7, ChunkSize: 50, Faults: fake.Faults{
					FetchLatency: time.Millisecond,
					Script: []fake.Fault{
						{Kind: fake.FailFetch, Split: 0, Record: 100, Times: 2},
						{Kind: fake.FailEmit, Split: 1, Record: 777, Times: 2},
						{Kind: fake.PanicEmit, Split: 2, Record: 1500, Times: 1},
						{Kind: fake.PanicFetch, Split: 3, Record: 2999, Times: 3},
						{Kind: fake.FailEmit, Split: 4, Record: 0, Times: 1},
					},
				}}
				l := newLedger()
				run(t, engine.Job{
					Name: "failing", Parallelism: 3, Source: engine.From(source(t, cfg)), Sink: l, Exchange: kind,
					Checkpoint: engine.Checkpoint{Interval: 5 * time.Millisecond}, Options: quick(), Logger: logger(t),
				})
				l.exactlyOnce(t, cfg, 6, false)
			})
		})
	}
}

func TestFailingSinksLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 6, RecordsPerSplit: 3000, ChunkSize: 50, Faults: fake.Faults{FetchLatency: time.Millisecond}}
		l := newLedger()
		writes := make([]int, 3)
		l.onWrite = func(_ context.Context, task, _ int) error {
			writes[task]++
			if writes[task]%37 == 0 && writes[task] < 150 {
				return errors.New("no space left")
			}
			return nil
		}
		commits := make([]int, 3)
		l.onCommit = func(task int) error {
			if commits[task]++; commits[task]%3 == 0 {
				return errors.New("commit refused")
			}
			return nil
		}
		run(t, engine.Job{
			Name: "sinks", Parallelism: 3, Source: engine.From(source(t, cfg)), Sink: l,
			Checkpoint: engine.Checkpoint{Interval: 5 * time.Millisecond}, Options: quick(), Logger: logger(t),
		})
		l.exactlyOnce(t, cfg, 6, false)
	})
}

func TestStopTakesASavepointAndEverythingBeforeItIsCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 4, RecordsPerSecond: 10_000}
		l := newLedger()
		h, err := engine.Start(t.Context(), engine.Job{
			Name: "stopped", Parallelism: 2, Source: engine.From(source(t, cfg)), Sink: l,
			Checkpoint: engine.Checkpoint{Interval: engine.Never}, Options: quick(), Logger: logger(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		if n := len(l.visible()); n != 0 {
			t.Errorf("%d records are visible before any checkpoint", n)
		}
		h.Stop()
		res, err := h.Wait(t.Context())
		if err != nil || res.Outcome != engine.Stopped || res.Checkpoint != 1 {
			t.Errorf("result %+v, %v", res, err)
		}
		if n := int64(len(l.visible())); n != res.Records || n < 10_000 {
			t.Errorf("%d records are visible, the result says %d", n, res.Records)
		}
	})
}

func TestAFatalErrorFailsTheJobAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.onWrite = func(context.Context, int, int) error { return sdk.Fatalf("the target is gone") }
		err := engine.Run(t.Context(), engine.Job{
			Name: "fatal", Source: engine.From(source(t, fake.Config{})), Sink: l, Options: quick(),
		})
		if !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("got %v", err)
		}
	})
}
