package reader

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// watch runs the watchdog of the rig until the test ends.
func (r *rig) watch() {
	r.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); r.dog.Run(r.t.Context()) }()
	r.t.Cleanup(func() { <-done })
}

func pass(d time.Duration) { <-time.After(d) }

// A turn past the hard limit is woken, and what it emitted counts: it was only slow.
func TestSlowTurnIsWokenAndItsRecordsCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.watch()
		woken := make(chan struct{})
		r.script.when("Wakeup", func() error { close(woken); return nil })
		yielded := false
		r.script.polls(func(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
			r.script.polls(nil)
			<-woken
			yielded = turn.ShouldYield()
			out.Emit(sdk.Record{Offset: 1})
			return sdk.NothingAvailable, nil
		})
		r.script.ctx.NotifyAvailable()
		pass(2 * time.Second)
		r.script.when("Wakeup", nil)
		r.settle()
		if got := r.received(); !slices.Equal(got, []int64{1}) || !yielded || r.failed() != nil {
			t.Errorf("received %v, yielded %t, failure %v", got, yielded, r.failed())
		}
		if r.stats.HardViolations.Value() != 1 || r.stats.SoftViolations.Value() != 1 {
			t.Errorf("%d hard and %d soft violations", r.stats.HardViolations.Value(), r.stats.SoftViolations.Value())
		}
		// The next turn is not preempted by what the last one was told.
		r.script.polls(func(turn *sdk.Turn, _ sdk.Output) (sdk.PollStatus, error) {
			yielded = turn.ShouldYield()
			return sdk.NothingAvailable, nil
		})
		r.script.ctx.NotifyAvailable()
		if r.settle(); yielded {
			t.Error("the next turn is told to yield at once")
		}
	})
}

// Invariant 7: a connector that does not return is given up. The attempt fails once, and whatever its goroutine does when it
// comes back changes nothing: not its records, its splits, its snapshot, nor what it asks for.
func TestAbandonedAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"Poll", "Snapshot", "HandleEvent", "Open", "Close"} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, 4, nil)
				r.watch()
				back := make(chan struct{})
				stuck := func() error {
					<-back
					r.script.ctx.RequestSplit()
					r.script.ctx.SendEvent(sdk.Event{Kind: "zombie"})
					return nil
				}
				r.script.when(call, stuck)
				r.loop.Start(t.Context())
				r.offer(protocol.Register, protocol.RegisterPayload{})
				r.offer(protocol.SourceEvent, eventPayload("e"))
				r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
				if call == "Close" {
					r.settle()
					r.received()
					r.loop.Terminal()
				}
				pass(31 * time.Second)
				r.settle()
				if err := r.failed(); !errors.Is(err, ErrStuck) || r.count("failed") != 1 {
					t.Errorf("failure is %v", err)
				}
				if ack := r.loop.Mailbox().Offer(r.envelope(protocol.SourceEvent, eventPayload("late"))); ack.Status != protocol.TerminalRejected {
					t.Errorf("an abandoned attempt admits: %+v", ack)
				}
				r.forget()
				r.script.put(1, 2)
				close(back)
				<-r.loop.Done()
				r.want("after it came back", map[bool]string{true: "", false: "close"}[call == "Close"])
				if got := r.received(); len(got) != 0 {
					t.Errorf("received %v from an abandoned attempt", got)
				}
				if r.budget.Used() != 0 {
					t.Errorf("%d bytes stay reserved", r.budget.Used())
				}
			})
		})
	}
}

// A poll that emits after the fence is told so, and its batch goes nowhere.
func TestFencedEmitIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		var before, after, view bool
		r.script.polls(func(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
			r.script.polls(nil)
			before = out.Emit(sdk.Record{Offset: 1})
			r.loop.Fence()
			after = out.Emit(sdk.Record{Offset: 2})
			_, view = out.EmitView(numbers(3), 0)
			return sdk.MoreAvailable, nil
		})
		r.script.ctx.NotifyAvailable()
		r.settle()
		if got := r.received(); !before || after || view || len(got) != 0 {
			t.Errorf("accepted %t, then %t and %t; received %v", before, after, view, got)
		}
		if n := r.stats.FencedEmits.Value(); n != 2 {
			t.Errorf("%d refused emits counted", n)
		}
	})
}

// numbers is a view of n records of 100 bytes each; every fourth element only advances the position.
type numbers int

func (n numbers) Len() int                 { return int(n) }
func (n numbers) Bytes(from, to int) int64 { return 100 * int64(to-from) }
func (n numbers) Record(i int, into *sdk.Record) bool {
	*into = sdk.Record{Offset: int64(i)}
	return i%4 != 3
}

// A view goes out in parts that keep to the turn's budgets, one element at least, and every element once.
func TestViewKeepsToTheBudgets(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]struct {
		turn sdk.TurnLimits
		want []int // accepted per turn, of ten elements of 100 bytes
	}{
		"records":                  {sdk.TurnLimits{Records: 4, Bytes: 1 << 20, Duration: time.Second}, []int{4, 4, 2}},
		"bytes":                    {sdk.TurnLimits{Records: 64, Bytes: 500, Duration: time.Second}, []int{5, 5}},
		"larger than the budget":   {sdk.TurnLimits{Records: 64, Bytes: 50, Duration: time.Second}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"one turn takes it in one": {sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, []int{10}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 16, func(c *Config) { c.Limits.Turn = limits.turn })
				from, accepted := 0, []int(nil)
				r.script.polls(func(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
					n := 0
					for from < 10 {
						k, ok := out.EmitView(numbers(10), from)
						if !ok || k == 0 {
							break
						}
						from, n = from+k, n+k
					}
					if n > 0 {
						accepted = append(accepted, n)
					}
					if from < 10 {
						return sdk.MoreAvailable, nil
					}
					return sdk.NothingAvailable, nil
				})
				r.script.ctx.NotifyAvailable()
				r.settle()
				if !slices.Equal(accepted, limits.want) {
					t.Errorf("accepted %v, want %v", accepted, limits.want)
				}
				if got := r.received(); !slices.Equal(got, []int64{0, 1, 2, 4, 5, 6, 8, 9}) {
					t.Errorf("received %v", got)
				}
			})
		})
	}
}

// A turn allocates nothing once it runs: neither the loop nor the exchange adds to what the connector needs.
func BenchmarkTurn(b *testing.B) {
	t := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Hour}, time.Now, nil)
	fenced, refused := newFlags()
	o := output{fenced: fenced, refused: refused, turn: t, batch: &sdk.Batch{}}
	rec := sdk.Record{Value: make([]byte, 100)}
	b.ReportAllocs()
	for b.Loop() {
		t.Restart()
		o.batch.Reset()
		for !t.ShouldYield() {
			o.Emit(rec)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/record")
}

func newFlags() (*atomic.Bool, *telemetry.Counter) { return &atomic.Bool{}, &telemetry.Counter{} }
