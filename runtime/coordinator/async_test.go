package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/sdk"
)

// work is a call whose result the test decides.
type work struct {
	started chan struct{}
	result  chan string
}

func newWork() *work { return &work{started: make(chan struct{}, 100), result: make(chan string)} }

// run waits for its result and ignores its context.
func (w *work) run(context.Context) (string, error) {
	w.started <- struct{}{}
	r, ok := <-w.result
	if !ok || r == "error" {
		return "", errScripted
	}
	if r == "panic" {
		panic(errScripted)
	}
	return r, nil
}

// FLINK-20081: the result, value, error and panic alike, comes to the loop, never to a worker's goroutine.
func TestResultsComeToTheLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		for i, result := range []string{"value", "error", "panic"} {
			key := fmt.Sprint("k", i)
			release := make(chan struct{})
			busy := make(chan struct{})
			w := newWork()
			r.do(func() { r.call(key, w.run, sdk.CallOptions{}) })
			r.loop.inbox.put("busy", func() error { close(busy); <-release; return nil })
			<-busy
			w.result <- result
			r.want("while the loop is busy", "")
			close(release)
			r.want("afterwards", map[string]string{"value": key + ": value"}[result]+map[bool]string{true: key + ": error"}[result != "value"])
			r.forget()
		}
		if r.failed() != nil || r.stats.AsyncFailures.Value() != 2 || r.stats.AsyncRunning.Value() != 0 || r.stats.AsyncQueued.Value() != 0 {
			t.Errorf("failure %v, %d failures, %d running, %d queued", r.failed(), r.stats.AsyncFailures.Value(),
				r.stats.AsyncRunning.Value(), r.stats.AsyncQueued.Value())
		}
	})
}

// Overlapping calls of a key: by default the newest of them runs once after the running one.
func TestOverlappingCallsCoalesceToTheNewest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		for i := range 4 {
			r.do(func() {
				r.call("k", func(ctx context.Context) (string, error) {
					v, err := w.run(ctx)
					return fmt.Sprintf("%d %s", i, v), err
				}, sdk.CallOptions{})
			})
		}
		w.result <- "first"
		w.result <- "second"
		r.want("journal", "k: 0 first, k: 3 second")
		if len(w.started) != 2 || r.stats.Overlaps.Value() != 3 || r.stats.Coalesced.Value() != 2 {
			t.Errorf("%d started, %d overlaps, %d coalesced", len(w.started), r.stats.Overlaps.Value(), r.stats.Coalesced.Value())
		}
	})
}

func TestOverlappingCallsMayBeSkipped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		for range 4 {
			r.do(func() { r.call("k", w.run, sdk.CallOptions{Overlap: sdk.SkipIfRunning}) })
		}
		w.result <- "only"
		r.want("journal", "k: only")
		if len(w.started) != 1 || r.stats.Skipped.Value() != 3 {
			t.Errorf("%d started, %d skipped", len(w.started), r.stats.Skipped.Value())
		}
		r.do(func() { r.call("k", w.run, sdk.CallOptions{Overlap: sdk.SkipIfRunning}) })
		w.result <- "next"
		r.want("after the result the key is free", "k: only, k: next")
	})
}

// FLINK-32887: fixed delay. A call that asks for the next one from its result waits for the delay after its end, so that slow
// calls never pile up.
func TestDelayCountsFromTheEndOfTheLastCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		began := time.Now()
		var at []time.Duration
		var again func()
		again = func() {
			sdk.CallAsync(r.script.ctx, "k", func(context.Context) (string, error) {
				at = append(at, time.Since(began))
				<-time.After(5 * time.Second)
				return "", nil
			}, func(string, error) {
				if len(at) < 3 {
					again()
				}
			}, sdk.CallOptions{Delay: time.Second})
		}
		r.do(again)
		<-time.After(time.Minute)
		synctest.Wait()
		if got := fmt.Sprint(at); got != "[1s 7s 13s]" {
			t.Errorf("ran at %s", got)
		}
	})
}

// A call that takes too long is told so in time, though its work ignores the context, and its late result is dropped.
func TestCallTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		began := time.Now()
		r.do(func() { r.call("k", w.run, sdk.CallOptions{Timeout: 3 * time.Second}) })
		<-time.After(3 * time.Second)
		r.want("at the timeout", "k: timeout")
		r.do(func() {
			r.call("k", func(context.Context) (string, error) { return "next", nil }, sdk.CallOptions{})
		})
		w.result <- "late"
		r.want("afterwards", "k: timeout, k: next")
		if took := time.Since(began); took != 3*time.Second || r.stats.AsyncTimeouts.Value() != 1 {
			t.Errorf("took %s, %d timeouts", took, r.stats.AsyncTimeouts.Value())
		}
	})
}

// Work sees the timeout, the default being one minute, and the end of the epoch in its context.
func TestContextOfACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		causes := make(chan error, 2)
		var left time.Duration
		wait := func(ctx context.Context) (string, error) {
			at, _ := ctx.Deadline()
			left = time.Until(at)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", ctx.Err()
		}
		r.do(func() { r.call("k", wait, sdk.CallOptions{}) })
		<-time.After(time.Minute)
		if err := <-causes; !errors.Is(err, errCallTimeout) || left != time.Minute {
			t.Errorf("cause %v after %s", err, left)
		}
		r.want("journal", "k: timeout")
		r.do(func() { r.call("k", wait, sdk.CallOptions{}) })
		r.loop.Fence()
		if err := <-causes; !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("cause %v", err)
		}
		r.want("nothing is told after the fence", "k: timeout, close")
	})
}

// Invariant 7: a result that belongs to an epoch that is over changes nothing.
func TestResultOfAnOldEpochIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		r.do(func() { r.call("k", w.run, sdk.CallOptions{}) })
		r.failover(nil)
		r.serve()
		r.forget()
		w.result <- "late"
		r.want("journal", "")
		r.do(func() { r.call("k", w.run, sdk.CallOptions{}) })
		w.result <- "new"
		r.want("the same key in the new epoch", "k: new")
	})
}

func TestFailCoordinatorEndsTheEpoch(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"error", "panic"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 1, nil)
				w := newWork()
				r.do(func() { r.call("k", w.run, sdk.CallOptions{OnFailure: sdk.FailCoordinator}) })
				w.result <- how
				<-r.loop.Done()
				r.want("done is not called", "failed 5, close")
				if !errors.Is(r.failed(), errScripted) || !strings.Contains(r.failed().Error(), "k:") {
					t.Errorf("failure is %v", r.failed())
				}
			})
		})
	}
}

// A panic in what runs on the loop ends the epoch: in a result's handler, in a task.
func TestPanicInHandlersEndsTheEpoch(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(s sdk.Scheduler){
		"done": func(s sdk.Scheduler) {
			s.Call("k", func(context.Context) (any, error) { return nil, nil }, func(any, error) { panic(errScripted) }, sdk.CallOptions{})
		},
		"task": func(s sdk.Scheduler) { s.Schedule("k", time.Second, func() { panic(errScripted) }) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 1, nil)
				r.do(func() { act(r.script.ctx) })
				<-r.loop.Done()
				if _, ok := errors.AsType[*connector.PanicError](r.failed()); !ok || !errors.Is(r.failed(), errScripted) {
					t.Errorf("failure is %v", r.failed())
				}
				r.want("journal", "failed 5, close")
			})
		})
	}
}

// The pool is bounded: what waits for a place waits there, and not on the loop.
func TestWorkersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil) // two places
		w := newWork()
		for i := range 5 {
			r.do(func() { r.call(fmt.Sprint("k", i), w.run, sdk.CallOptions{}) })
		}
		if n := len(w.started); n != 2 || r.stats.AsyncRunning.Value() != 2 || r.stats.AsyncQueued.Value() != 3 {
			t.Errorf("%d started, %d running, %d queued", n, r.stats.AsyncRunning.Value(), r.stats.AsyncQueued.Value())
		}
		r.do(func() { r.note("alive") })
		for range 5 {
			w.result <- "done"
		}
		if got := r.log(); !strings.HasPrefix(got, "alive, ") || strings.Count(got, ": done") != 5 {
			t.Errorf("journal: %s", got)
		}
		if err := r.workers.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A call that waits for a place when the epoch ends never starts.
func TestWaitingCallIsDroppedWithTheEpoch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		for i := range 5 {
			r.do(func() { r.call(fmt.Sprint("k", i), w.run, sdk.CallOptions{}) })
		}
		r.loop.Fence()
		close(w.result)
		if err := r.workers.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(w.started); n != 2 || r.stats.AsyncQueued.Value() != 0 {
			t.Errorf("%d started, %d queued", n, r.stats.AsyncQueued.Value())
		}
	})
}

func TestWaitForWorkersCanBeGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		w := newWork()
		r.do(func() { r.call("k", w.run, sdk.CallOptions{}) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.workers.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(w.result)
	})
}

func TestScheduleReplaceAndCancel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		task := func(name string) func() { return func() { r.note("%s", name) } }
		r.do(func() {
			r.script.ctx.Schedule("a", time.Second, task("a1"))
			r.script.ctx.Schedule("a", 3*time.Second, task("a2"))
			r.script.ctx.Schedule("b", 2*time.Second, task("b"))
			r.script.ctx.Schedule("c", 2*time.Second, task("c"))
			r.script.ctx.Cancel("c")
			r.script.ctx.Cancel("nobody")
		})
		<-time.After(2500 * time.Millisecond)
		r.want("after 2.5 s", "b")
		<-time.After(time.Minute)
		r.want("after a minute", "b, a2")
	})
}

// A timer that has fired while the loop was busy, and was replaced or cancelled before it came to its turn, is stale.
func TestFiredTimerThatWasReplacedIsStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		task := func(name string) func() { return func() { r.note("%s", name) } }
		r.do(func() {
			r.script.ctx.Schedule("a", time.Second, task("old"))
			r.script.ctx.Schedule("b", time.Second, task("cancelled"))
		})
		release := make(chan struct{})
		r.loop.inbox.put("busy", func() error {
			<-release
			r.script.ctx.Schedule("a", time.Second, task("new"))
			r.script.ctx.Cancel("b")
			return nil
		})
		<-time.After(2 * time.Second)
		close(release)
		r.want("journal", "")
		<-time.After(2 * time.Second)
		r.want("journal", "new")
		if r.stats.StaleResults.Value() != 2 {
			t.Errorf("%d stale results counted", r.stats.StaleResults.Value())
		}
	})
}

// Cancel ends a running call, a delayed one, and a coalesced one; none is told.
func TestCancelOfACall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		cause := make(chan error, 1)
		r.do(func() {
			r.call("running", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return "", nil
			}, sdk.CallOptions{})
			r.call("running", func(context.Context) (string, error) { return "coalesced", nil }, sdk.CallOptions{})
			r.call("delayed", func(context.Context) (string, error) { return "delayed", nil }, sdk.CallOptions{Delay: time.Second})
		})
		r.do(func() {
			r.script.ctx.Cancel("running")
			r.script.ctx.Cancel("delayed")
		})
		if err := <-cause; !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("cause is %v", err)
		}
		<-time.After(time.Minute)
		r.want("journal", "")
		r.do(func() {
			if len(r.loop.scheduler.calls) != 0 {
				t.Errorf("%d calls are kept", len(r.loop.scheduler.calls))
			}
		})
	})
}

// Keys in use at one moment are bounded: beyond, the epoch ends with an error that names the key.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(s sdk.Scheduler, key string){
		"calls": func(s sdk.Scheduler, key string) {
			s.Call(key, func(context.Context) (any, error) { return nil, nil }, func(any, error) {}, sdk.CallOptions{Delay: time.Hour})
		},
		"timers": func(s sdk.Scheduler, key string) { s.Schedule(key, time.Hour, func() {}) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 1, nil)
				r.do(func() {
					for i := range maxKeys {
						use(r.script.ctx, fmt.Sprint("k", i))
					}
					use(r.script.ctx, "k0") // in use already
				})
				if r.failed() != nil {
					t.Fatalf("within the bound: %v", r.failed())
				}
				r.do(func() { use(r.script.ctx, "one too many") })
				if err := r.failed(); !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), "one too many") {
					t.Errorf("failure is %v", err)
				}
			})
		})
	}
}

func TestCallOfAnotherTypeIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.do(func() {
			sdk.CallAsync(r.script.ctx, "nil", func(context.Context) (error, error) { return nil, nil },
				func(v error, err error) { r.note("%v %v", v, err) }, sdk.CallOptions{})
		})
		r.want("journal", "<nil> <nil>")
	})
}

// A result that came to the loop while it was busy, and whose call was cancelled before its turn, is stale: it is not taken for
// the result of the next call of that key.
func TestResultOfACancelledCallIsStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		first, second := newWork(), newWork()
		r.do(func() { r.call("k", first.run, sdk.CallOptions{}) })
		release := make(chan struct{})
		r.loop.inbox.put("busy", func() error {
			<-release
			r.script.ctx.Cancel("k")
			r.call("k", second.run, sdk.CallOptions{})
			return nil
		})
		first.result <- "old"
		synctest.Wait()
		close(release)
		second.result <- "new"
		r.want("journal", "k: new")
		if r.stats.StaleResults.Value() != 1 {
			t.Errorf("%d stale results counted", r.stats.StaleResults.Value())
		}
	})
}
