package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Reserved capacity that runs out is an invariant violation of that reader's mailbox, not a refusal to be retried.
func TestExhaustedReservedCapacityBreaksTheReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.readers[1].script(func(e *protocol.Envelope) *protocol.Ack {
			if e.Kind.Reserved() {
				return &protocol.Ack{Status: protocol.TerminalRejected, Reason: protocol.ReasonReserved}
			}
			return nil
		})
		r.loop.Cut(1, protocol.Periodic)
		r.want("journal", "snapshot 1, cut 1, broken 1, declined 1")
	})
}

// A command that the engine's own reader calls invalid is a mistake that no restart cures.
func TestInvalidCommandIsFatal(t *testing.T) {
	t.Parallel()
	for _, status := range []protocol.Status{protocol.InvalidPayload, protocol.UnsupportedProtocol, 99} {
		t.Run(status.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 1, nil)
				r.readers[0].script(func(*protocol.Envelope) *protocol.Ack { return &protocol.Ack{Status: status} })
				r.do(func() { _ = r.script.ctx.Assign(0, typed("a")) }) // whatever it answers, the epoch ends
				if err := r.failed(); !errors.Is(err, sdk.ErrFatal) {
					t.Errorf("failure is %v", err)
				}
			})
		})
	}
}

// FLINK-20193, FLINK-23843, FLINK-24303: an error or a panic in any callback ends the epoch once, tells the job once, closes the
// enumerator once, and nothing is called behind it.
func TestFailureInAnyCallbackEndsTheEpochOnce(t *testing.T) {
	t.Parallel()
	trigger := map[string]func(*rig){
		"NewEnumerator": func(*rig) {}, "Start": func(*rig) {}, "AddReader": func(*rig) {},
		"ReturnSplits":       func(r *rig) { r.assign(0, "a"); r.readers[0].restart(nil) },
		"Snapshot":           func(r *rig) { r.loop.Cut(1, protocol.Periodic) },
		"HandleSplitRequest": func(r *rig) { r.port.RequestSplit(0, r.readers[0].attempt) },
		"HandleReaderEvent":  func(r *rig) { r.port.Event(0, r.readers[0].attempt, sdk.Event{Kind: "e"}) },
		"SplitsFinished":     func(r *rig) { r.loop.Complete(1, untyped("a")) },
		"CheckpointComplete": func(r *rig) { r.loop.Complete(1, nil) },
		"CheckpointAborted":  func(r *rig) { r.loop.Abort(1) },
	}
	for call, act := range trigger {
		for how, fail := range map[string]func() error{
			"error": func() error { return errScripted },
			"panic": func() error { panic(errScripted) },
		} {
			t.Run(call+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t, 1, nil)
					r.readers[0].begin(nil)
					r.script.when(call, fail)
					r.start()
					r.serve()
					act(r)
					synctest.Wait()
					r.loop.Complete(9, nil)
					r.port.RequestSplit(0, r.readers[0].attempt)
					<-r.loop.Done()
					log := r.log()
					_, panicked := errors.AsType[*connector.PanicError](r.failed())
					if !errors.Is(r.failed(), errScripted) || panicked != (how == "panic") || strings.Count(log, "failed 5") != 1 {
						t.Errorf("failure %v; %s", r.failed(), log)
					}
					want := "failed 5, close"
					if call == "NewEnumerator" {
						want = "failed 5" // there is nothing to close
					}
					if !strings.HasSuffix(log, want) || call == "Snapshot" && strings.Contains(log, "cut 1") {
						t.Errorf("journal: %s", log)
					}
				})
			})
		}
	}
}

func TestFailingCloseChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.script.when("Close", func() error { panic(errScripted) })
		r.loop.Fence()
		<-r.loop.Done()
		r.want("journal", "close")
	})
}

// Invariant 7: an enumerator call that does not return is given up, once; and whatever it does when it comes back changes
// nothing.
func TestStuckEnumeratorIsAbandonedAndFenced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.watch()
		back := make(chan struct{})
		r.script.when("HandleSplitRequest", func() error {
			<-back
			if err := r.script.ctx.Assign(0, typed("zombie")); err != nil {
				t.Errorf("after the epoch Assign does nothing: %v", err)
			}
			_ = r.script.ctx.NoMoreSplits(0)
			r.script.ctx.SendEvent(0, sdk.Event{Kind: "zombie"})
			r.script.ctx.RequestCheckpoint()
			r.script.ctx.Schedule("k", 0, func() { t.Error("a task of a fenced epoch ran") })
			r.script.ctx.Call("k", nil, nil, sdk.CallOptions{})
			return nil
		})
		r.readers[0].offered()
		r.port.RequestSplit(0, r.readers[0].attempt)
		<-time.After(31 * time.Second)
		if !errors.Is(r.failed(), ErrStuck) {
			t.Errorf("failure is %v", r.failed())
		}
		close(back)
		<-r.loop.Done()
		r.want("journal", "request 0, failed 5, close")
		if got := r.readers[0].offered(); got != "" {
			t.Errorf("offered %s", got)
		}
	})
}

// A Close that hangs after a failure is no second failure.
func TestStuckCloseAfterAFailureIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.watch()
		back := make(chan struct{})
		r.script.when("Close", func() error { <-back; return nil })
		r.script.when("HandleSplitRequest", func() error { return errScripted })
		r.port.RequestSplit(0, r.readers[0].attempt)
		<-time.After(time.Minute)
		r.want("journal", "request 0, failed 5, close")
		close(back)
		<-r.loop.Done()
	})
}

// FLINK-32411: closing before the start leaks nothing, and makes nothing.
func TestFenceBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		r.loop.Fence()
		r.loop.Cut(1, protocol.Periodic)
		r.loop.Start(t.Context())
		<-r.loop.Done()
		r.loop.Fence()
		r.want("journal", "")
	})
}

// The inbox is bounded by its senders; if that reasoning fails, the epoch ends with an error instead of growing.
func TestInboxOverflowEndsTheEpoch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.do(func() {
			for range r.loop.inbox.limit + 1 {
				r.loop.Abort(1)
			}
		})
		if !errors.Is(r.failed(), ErrOverflow) {
			t.Errorf("failure is %v", r.failed())
		}
	})
}

// STIP reference implementation: what was kept for a command in flight leaked when its reader was replaced. However often that
// happens, one target and nothing else is left.
func TestRestartsWithACommandInFlightLeaveNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		for i := range 50 {
			r.readers[0].refuse(protocol.AddSplits)
			r.assign(0, fmt.Sprint("s", i))
			r.port.Applied(0, r.readers[0].attempt, protocol.Watermark{Epoch: firstEpoch, Applied: 1})
			r.readers[0].restart(nil)
		}
		<-time.After(time.Second)
		r.do(func() {
			queued := len(r.loop.targets[0].queue)
			if len(r.loop.targets) != 1 || queued != 0 || r.loop.tracker.splits != 0 || len(r.loop.tracker.byReader) != 0 || len(r.loop.tracker.applied) != 0 {
				t.Errorf("%d targets, %d queued, tracker %+v", len(r.loop.targets), queued, r.loop.tracker)
			}
			if len(r.script.unassigned) != 50 {
				t.Errorf("%d of 50 splits came back", len(r.script.unassigned))
			}
		})
		if n := len(r.loop.inbox.mu.slots); n > 1 {
			t.Errorf("%d slots for one reader", n)
		}
	})
}
