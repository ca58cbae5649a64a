package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// The enumerator starts once every reader has answered, and knows them all before it may assign.
func TestEpochStartsWhenAllReadersHaveRegistered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 2, nil)
		r.readers[0].begin(nil)
		r.start()
		r.serve()
		r.want("with one of two", "new []")
		r.loop.Cut(1, protocol.Periodic)
		r.want("a cut has to wait", "new [], declined 1")
		r.readers[1].begin(nil)
		r.loop.ReaderUp(1, r.readers[1].attempt, r.readers[1], &telemetry.Reader{})
		r.serve()
		r.want("with both", "new [], declined 1, start, reader 0 [] [], reader 1 [] [], reconciled 5")
		r.do(func() {
			if got := fmt.Sprint(r.script.ctx.Readers(), r.script.ctx.Parallelism()); got != "[0 1] 2" {
				t.Errorf("readers are %s", got)
			}
		})
	})
}

func TestAssignReachesTheReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(1, "a", "b")
		r.do(func() {
			if err := r.script.ctx.NoMoreSplits(1); err != nil {
				t.Error(err)
			}
			if !r.script.ctx.SendEvent(1, sdk.Event{Kind: "hello"}) {
				t.Error("the event was dropped")
			}
		})
		if got := r.readers[1].offered(); got != "register#1 add_splits#2 no_more_splits#3 source_event#4" {
			t.Errorf("offered %s", got)
		}
		r.serve()
		if got := r.readers[1].holds(); got != "a b" {
			t.Errorf("the reader holds %s", got)
		}
		if got := r.stats.Assignments[telemetry.Applied].Value(); got != 2 {
			t.Errorf("%d splits are known to be applied", got)
		}
	})
}

func TestAssignToAnUnregisteredReaderIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.loop.ReaderDown(1, r.readers[1].attempt)
		r.do(func() {
			for _, err := range []error{
				r.script.ctx.Assign(1, typed("a")), r.script.ctx.Assign(7, typed("a")), r.script.ctx.NoMoreSplits(1),
			} {
				if !errors.Is(err, ErrNotRegistered) {
					t.Errorf("got %v", err)
				}
			}
			if r.script.ctx.SendEvent(1, sdk.Event{Kind: "e"}) {
				t.Error("an event to nobody was taken")
			}
			if err := r.script.ctx.Assign(1, nil); err != nil {
				t.Errorf("nothing to assign: %v", err)
			}
		})
	})
}

// An assignment is cut into commands that fit the limit; a split that does not fit alone is an error that no restart cures.
func TestAssignmentIsCutIntoCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, func(c *Config) { c.PayloadBytes = 120 })
		r.assign(0, "a", "b", "c", "d", "e")
		if got := r.readers[0].offered(); got != "register#1 add_splits#2 add_splits#3 add_splits#4" {
			t.Errorf("offered %s", got)
		}
		r.do(func() {
			if err := r.script.ctx.Assign(0, typed(strings.Repeat("x", 200))); !errors.Is(err, sdk.ErrFatal) {
				t.Errorf("a split larger than a command: %v", err)
			}
		})
		r.serve()
		if got := r.readers[0].holds(); got != "a b c d e" {
			t.Errorf("the reader holds %s", got)
		}
	})
}

// At the tracker's bound assignments are refused, nothing of them is taken, and a completed checkpoint makes room again.
func TestTrackerBoundBackpressures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, func(c *Config) { c.TrackerSplits = 3 })
		r.assign(0, "a", "b")
		r.do(func() {
			if err := r.script.ctx.Assign(0, typed("c", "d")); !errors.Is(err, sdk.ErrBackpressure) {
				t.Errorf("beyond the bound: %v", err)
			}
		})
		r.assign(0, "c")
		r.serve()
		if got := r.readers[0].holds(); got != "a b c" || r.stats.Backpressure.Value() != 1 {
			t.Errorf("the reader holds %s, %d refusals", got, r.stats.Backpressure.Value())
		}
		r.checkpoint(1)
		r.assign(0, "d", "e", "f")
		r.serve()
		if got := r.readers[0].holds(); got != "a b c d e f" {
			t.Errorf("after the checkpoint the reader holds %s", got)
		}
	})
}

// Commands that wait for a slow reader are bounded in number: assignments by backpressure, events by being dropped, and saying
// no-more-splits over and over is one command.
func TestWaitingCommandsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, func(c *Config) { c.TrackerSplits = 100_000; c.TrackerBytes = 1 << 30 })
		r.readers[0].script(func(*protocol.Envelope) *protocol.Ack { return &protocol.Ack{Status: protocol.RetryLater} })
		r.do(func() {
			taken := 0
			for range 10_000 {
				err := r.script.ctx.Assign(0, typed(fmt.Sprint("s", taken)))
				if errors.Is(err, sdk.ErrBackpressure) {
					break
				}
				taken++
			}
			events := 0
			for r.script.ctx.SendEvent(0, sdk.Event{Kind: "e"}) {
				events++
			}
			for range 1000 {
				if err := r.script.ctx.NoMoreSplits(0); err != nil {
					t.Error(err)
				}
			}
			if queue := len(r.loop.targets[0].queue); taken != maxQueued || events != maxReaderEvents || queue != taken+events+1 {
				t.Errorf("%d assignments, %d events, %d waiting", taken, events, queue)
			}
		})
		r.readers[0].script(nil)
		<-time.After(time.Second)
		r.serve()
		if n := len(r.readers[0].owned); n != maxQueued {
			t.Errorf("%d of %d splits arrived", n, maxQueued)
		}
		r.do(func() {
			if !r.script.ctx.SendEvent(0, sdk.Event{Kind: "e"}) {
				t.Error("no room for events although they went out")
			}
		})
	})
}

// A refused command is offered again, with growing pauses, before everything behind it.
func TestRetryLaterKeepsTheOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		rd := r.readers[0]
		began := time.Now()
		var at []time.Duration
		tries := 0
		rd.script(func(e *protocol.Envelope) *protocol.Ack {
			if e.Kind != protocol.AddSplits {
				return nil
			}
			at = append(at, time.Since(began))
			if tries++; tries <= 4 {
				return &protocol.Ack{Status: protocol.RetryLater, Reason: protocol.ReasonMailboxBytes}
			}
			return nil
		})
		r.assign(0, "a")
		r.do(func() { r.script.ctx.SendEvent(0, sdk.Event{Kind: "behind"}) })
		r.assign(0, "b")
		<-time.After(time.Second)
		r.serve()
		if got := fmt.Sprint(at); got != "[0s 10ms 30ms 70ms 110ms 110ms]" {
			t.Errorf("offered at %s", got)
		}
		rd.offered()
		if got := rd.holds(); got != "a b" {
			t.Errorf("the reader holds %s", got)
		}
		if r.stats.Retries.Value() != 4 {
			t.Errorf("%d retries counted", r.stats.Retries.Value())
		}
	})
}

// An acknowledgement that is lost leads to a second delivery, which the mailbox tells to be a duplicate: one effect.
func TestLostAcknowledgementHasOneEffect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		rd := r.readers[0]
		lost := false
		rd.script(func(e *protocol.Envelope) *protocol.Ack {
			if e.Kind != protocol.AddSplits || lost {
				return nil
			}
			lost = true
			rd.admit(e)
			return &protocol.Ack{Status: protocol.RetryLater}
		})
		r.assign(0, "a")
		<-time.After(time.Second)
		r.serve()
		if got := rd.holds(); got != "a" {
			t.Errorf("the reader holds %s", got)
		}
		if got := rd.offered(); got != "register#1 add_splits#2 add_splits#2" {
			t.Errorf("offered %s", got)
		}
	})
}

// A reader that is being replaced answers StaleTarget. The command is not offered again; its splits go back when the next
// attempt has registered.
func TestStaleTargetReturnsWithTheNextAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		rd := r.readers[0]
		rd.script(func(*protocol.Envelope) *protocol.Ack { return &protocol.Ack{Status: protocol.StaleTarget} })
		r.assign(0, "a")
		<-time.After(time.Second)
		if got := rd.offered(); strings.Count(got, "add_splits") != 1 {
			t.Errorf("offered %s", got)
		}
		r.want("before", "")
		rd.restart(nil)
		r.want("after", "returned a, reader 0 [] []")
	})
}

// FLINK-20290, FLINK-20396: splits are given back when it is known what the new attempt was restored from, not when the old one
// dies: what a completed checkpoint contains is in that attempt.
func TestSplitsReturnAtRegistrationNotAtTheFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		rd := r.readers[0]
		r.assign(0, "a")
		r.serve()
		cut := r.checkpoint(1)
		r.assign(0, "b")
		r.serve() // applied, in no checkpoint
		r.assign(0, "c")
		r.forget()
		r.loop.ReaderDown(0, rd.attempt)
		r.want("dead", "")
		rd.restart(&cut.Readers[0])
		r.want("back", "returned b c, reader 0 [a] []")
		if r.stats.ReturnedSplits.Value() != 2 {
			t.Errorf("%d returned splits counted", r.stats.ReturnedSplits.Value())
		}
	})
}

// A checkpoint that was taken, and not completed, before the reader died proves nothing: -1, "before any checkpoint", is known
// by a new attempt that holds nothing.
func TestUncompletedCheckpointProvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		rd := r.readers[0]
		r.assign(0, "a")
		r.serve()
		r.loop.Cut(1, protocol.Periodic)
		r.serve()
		r.loop.Included(1, 0, rd.attempt, rd.states[1].Metadata.Watermarks)
		r.loop.Abort(1)
		r.serve()
		r.forget()
		rd.restart(nil)
		r.want("back", "returned a, reader 0 [] []")
	})
}

// FLINK-35522, FLINK-31006: after a failover of a reader the enumerator is told of the new attempt, and its no-more-splits goes
// to that attempt; FLINK-40586: to the old one nothing goes any more.
func TestNoMoreSplitsGoesToTheNewAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.script.when("AddReader", func() error { return r.script.ctx.NoMoreSplits(0) })
		old := *r.readers[0]
		r.readers[0].offered()
		r.readers[0].restart(nil)
		if got := r.readers[0].offered(); got != "register#1 no_more_splits#2" {
			t.Errorf("the new attempt was offered %s", got)
		}
		if r.loop.targets[0].attempt == old.attempt {
			t.Error("the old attempt is still the target")
		}
	})
}

// Answers and reports of attempts and epochs that are over change nothing.
func TestStaleReadersChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		old := r.readers[0].attempt
		r.readers[0].restart(nil)
		r.forget()
		r.port.Registered(0, old, firstEpoch, reader.Registration{Owned: []reader.Held{{Split: encodedSplit("zombie")}}})
		r.port.Registered(0, r.readers[0].attempt, firstEpoch, reader.Registration{Owned: []reader.Held{{Split: encodedSplit("again")}}})
		r.port.Registered(1, r.readers[1].attempt, firstEpoch-1, reader.Registration{})
		r.port.RequestSplit(0, old)
		r.port.Applied(0, old, protocol.Watermark{Epoch: firstEpoch, Applied: 99})
		r.port.Applied(0, r.readers[0].attempt, protocol.Watermark{Epoch: firstEpoch - 1, Applied: 99})
		r.port.Event(0, old, sdk.Event{Kind: "zombie"})
		r.loop.ReaderUp(0, old, r.readers[0], &telemetry.Reader{})
		r.loop.ReaderDown(0, old)
		r.want("journal", "")
		r.do(func() {
			if len(r.script.ctx.Readers()) != 2 {
				t.Errorf("readers are %v", r.script.ctx.Readers())
			}
		})
	})
}

// What readers report between two looks of the loop is coalesced, and events of one reader are bounded.
func TestReaderReportsAreCoalescedAndBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		rd := r.readers[0]
		taken := 0
		r.do(func() { // the loop is busy: everything below waits
			for range 500 {
				r.port.RequestSplit(0, rd.attempt)
				r.port.Applied(0, rd.attempt, protocol.Watermark{Epoch: firstEpoch, Applied: 1})
				if r.port.Event(0, rd.attempt, sdk.Event{Kind: "e"}) {
					taken++
				}
			}
		})
		want := "request 0" + strings.Repeat(", event 0 e", maxReaderEvents)
		if got := r.log(); taken != maxReaderEvents || got != want {
			t.Errorf("%d events taken; %s", taken, got)
		}
		if r.stats.EventsDropped.Value() != 500-maxReaderEvents {
			t.Errorf("%d dropped events counted", r.stats.EventsDropped.Value())
		}
	})
}

func TestPortWithoutCoordinator(t *testing.T) {
	t.Parallel()
	var p Port
	p.Registered(0, 1, 1, reader.Registration{})
	p.Applied(0, 1, protocol.Watermark{})
	p.RequestSplit(0, 1)
	if p.Event(0, 1, sdk.Event{}) {
		t.Error("an event was taken by nobody")
	}
}

// A request that comes before its reader is known to the enumerator is kept for it.
func TestEarlySplitRequestIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 2, nil)
		r.readers[0].begin(nil)
		r.start()
		r.serve()
		r.port.RequestSplit(0, r.readers[0].attempt)
		r.want("before", "new []")
		r.readers[1].begin(nil)
		r.loop.ReaderUp(1, r.readers[1].attempt, r.readers[1], &telemetry.Reader{})
		r.serve()
		r.want("after", "new [], start, reader 0 [] [], reader 1 [] [], request 0, reconciled 5")
	})
}

func TestRequestCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.do(func() {
			if !r.script.ctx.RequestCheckpoint() {
				t.Error("refused")
			}
		})
		r.want("journal", "wanted")
	})
	t.Run("without checkpoints", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := started(t, 1, func(c *Config) { c.Checkpoints = false })
			r.do(func() {
				if r.script.ctx.RequestCheckpoint() {
					t.Error("a checkpoint was promised by a job that takes none")
				}
			})
			r.want("journal", "")
		})
	})
}

// watch runs the watchdog of the rig until the test ends.
func (r *rig) watch() {
	done := make(chan struct{})
	go func() { defer close(done); r.dog.Run(r.t.Context()) }()
	r.t.Cleanup(func() { <-done })
}

// Room at the bound comes with a completed checkpoint, and a job may take checkpoints only where something waits for one. So
// a refused assignment asks for one as soon as it would make room.
func TestARefusedAssignmentAsksForTheCheckpointThatMakesRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, func(c *Config) { c.TrackerSplits = 1 })
		refuse := func() {
			t.Helper()
			if err := r.script.ctx.Assign(0, typed("b")); !errors.Is(err, sdk.ErrBackpressure) {
				t.Errorf("beyond the bound: %v", err)
			}
		}
		r.assign(0, "a")
		r.do(refuse)
		if n := strings.Count(r.log(), "wanted"); n != 1 {
			t.Errorf("asked for %d checkpoints, want 1", n)
		}
		r.checkpoint(1)
		r.assign(0, "b")
	})
}
