package reader

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// bubble runs f as a parallel test in a bubble of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestLifeOfAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *Config) { c.Splits = []protocol.Split{encoded("r", 5)} })
		r.start()
		r.offer(protocol.Register, protocol.RegisterPayload{})
		r.assign("a")
		r.settle()
		r.script.put(1, 2)
		r.settle()
		r.barrier(1)
		r.stop()
		r.want("journal", "new reader, open, add r, opened, poll, registered 1, add a, applied 1/2, poll, poll, poll, "+
			"snapshot 1, acknowledged 1, poll, wakeup, close")
		if got := r.received(); !slices.Equal(got, []int64{1, 2, -1}) {
			t.Errorf("received %v", got)
		}
		if got := splitIDs(r.lastState().Splits); !slices.Equal(got, []string{"a", "r"}) {
			t.Errorf("the snapshot has %v", got)
		}
		if r.budget.Used() != 0 {
			t.Errorf("%d bytes stay reserved", r.budget.Used())
		}
	})
}

// Invariant 10: terminal preempts queued controls and the next turn, and wakes the running one.
func TestTerminalComesBeforeControlsAndPolls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		release := r.hold()
		r.offer(protocol.SourceEvent, eventPayload("queued"))
		r.script.put(1)
		r.forget()
		r.loop.Terminal()
		release()
		<-r.loop.Done()
		r.want("journal", "wakeup, close")
		if ack := r.loop.Mailbox().Offer(r.envelope(protocol.SourceEvent, eventPayload("late"))); ack.Status != protocol.TerminalRejected {
			t.Errorf("a command after the end: %+v", ack)
		}
	})
}

func TestControlsComeBeforeThePoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		release := r.hold()
		r.offer(protocol.SourceEvent, eventPayload("one"))
		r.offer(protocol.SourceEvent, eventPayload("two"))
		r.script.put(1, 2)
		r.forget()
		release()
		r.settle()
		r.want("journal", "event one, event two, poll", "applied")
	})
}

// Invariant 9: with a connector that always has more, a control waits for the turn that runs and for no other.
func TestControlWaitsForAtMostOneTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1<<20, nil)
		turns, turnsAtOffer := 0, 0
		r.script.polls(func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) {
			if turns++; turns == 100 {
				turnsAtOffer = turns
				r.offer(protocol.SourceEvent, eventPayload("now"))
			}
			if turns > 200 {
				return sdk.NothingAvailable, nil
			}
			return sdk.MoreAvailable, nil
		})
		at := 0
		r.script.when("HandleEvent", func() error { at = turns; return nil })
		r.script.ctx.NotifyAvailable()
		r.settle()
		if at != turnsAtOffer {
			t.Errorf("offered in turn %d, handled after turn %d", turnsAtOffer, at)
		}
	})
}

// Invariant 9 with a stuck sink: without credit no turn runs, controls and barriers are served all the same.
func TestControlsAreServedWithoutCredit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.script.put(1, 2, 3)
		r.settle()
		r.forget()
		r.offer(protocol.SourceEvent, eventPayload("one"))
		r.settle()
		r.want("without credit", "event one, applied 1/2")
		if !r.stats.OutputBlocked.Running() {
			t.Error("blocked output is not measured")
		}
		r.barrier(1)
		if got := r.received(); !slices.Equal(got, []int64{1, -1}) {
			t.Errorf("received %v", got)
		}
		r.settle() // the channel rings: the next turn runs
		if got := r.received(); !slices.Equal(got, []int64{2}) {
			t.Errorf("received %v", got)
		}
		r.settle()
		if got := r.received(); !slices.Equal(got, []int64{3}) {
			t.Errorf("received %v", got)
		}
		if r.settle(); r.stats.OutputBlocked.Running() {
			t.Error("output counts as blocked although nothing is left")
		}
	})
}

// armKinds are one command of every kind, but those after which no turn may run.
func armKinds() map[protocol.CommandKind]protocol.Payload {
	return map[protocol.CommandKind]protocol.Payload{
		protocol.Register:           protocol.RegisterPayload{},
		protocol.AddSplits:          splitsPayload("new"),
		protocol.NoMoreSplits:       protocol.NoMoreSplitsPayload{Generation: 1},
		protocol.SourceEvent:        eventPayload("e"),
		protocol.PauseOrResume:      protocol.PauseOrResumePayload{Resume: []sdk.SplitID{"a"}},
		protocol.Barrier:            protocol.BarrierPayload{Checkpoint: 5, Kind: protocol.Periodic},
		protocol.CheckpointComplete: protocol.CheckpointPayload{Checkpoint: 4},
		protocol.CheckpointAborted:  protocol.CheckpointPayload{Checkpoint: 4},
		protocol.SchemaChangeEnd:    protocol.SchemaChangePayload{Checkpoint: 4, Request: 1},
	}
}

// STIP reference implementation (seatunnel PR 11557): a control was applied and the availability gate not armed again, so
// nobody polled. Every applied control is followed by a turn.
func TestEveryAppliedControlIsFollowedByATurn(t *testing.T) {
	t.Parallel()
	kinds := armKinds()
	for _, kind := range protocol.Kinds() {
		payload, ok := kinds[kind]
		if !ok {
			if kind != protocol.GracefulClose && kind != protocol.SchemaChangeBegin {
				t.Errorf("kind %s is not covered", kind)
			}
			continue
		}
		t.Run(kind.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 4, nil)
				r.offer(kind, payload)
				r.settle()
				if n := r.count("poll"); n != 1 {
					t.Errorf("%d turns followed: %s", n, r.log())
				}
			})
		})
	}
}

// The same bug as it showed: NO_MORE_SPLITS reaches a reader that has nothing to read, and END_OF_INPUT must still be polled.
// FLINK-21159: so it is for a reader that never had a split.
func TestNoMoreSplitsToAnIdleReaderEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.script.when("NoMoreSplits", func() error {
			r.script.polls(func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) { return sdk.EndOfInput, nil })
			return nil
		})
		r.offer(protocol.NoMoreSplits, protocol.NoMoreSplitsPayload{Generation: 3})
		r.settle()
		r.want("journal", "no more splits, applied 1/2, poll, ended true")
		// FLINK-40586: said again to a reader that has ended, it is benign.
		r.offer(protocol.NoMoreSplits, protocol.NoMoreSplitsPayload{Generation: 2})
		r.settle()
		if r.failed() != nil || r.count("poll") != 1 || r.count("ended true") != 1 {
			t.Errorf("after the second: %v, %s", r.failed(), r.log())
		}
		if s := r.barrier(1); !s.Ended || s.Metadata.NoMoreSplitsGeneration != 3 {
			t.Errorf("the snapshot says ended %t, generation %d", s.Ended, s.Metadata.NoMoreSplitsGeneration)
		}
	})
}

// A split that is returned by a failed reader comes after the end: the reader reads again, and says so.
func TestLateSplitAfterEndOfInputOpensAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		end := func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) { return sdk.EndOfInput, nil }
		r.script.polls(end)
		r.assign("a")
		r.settle()
		r.script.ctx.NotifyAvailable()
		r.settle()
		r.want("ended once, and not polled again", "add a, poll, ended true", "applied")
		r.assign("a") // nothing new: still ended
		r.settle()
		r.want("a split that it has", "add a, poll, ended true", "applied")
		r.script.polls(nil)
		r.script.mu.Lock()
		r.script.ready = []int64{8}
		r.script.mu.Unlock()
		r.assign("b")
		r.settle()
		r.want("a late split", "add a, poll, ended true, ended false, add b, poll", "applied")
		if got := r.received(); !slices.Equal(got, []int64{8}) {
			t.Errorf("received %v", got)
		}
		if r.barrier(1).Ended {
			t.Error("the snapshot still says ended")
		}
	})
}

// Lost availability, brute force at the loop: whatever the order of rings, controls and missing credit, everything that was
// put comes out.
func TestRecordsAreNeverLeftBehind(t *testing.T) {
	t.Parallel()
	// p: a record is put, with a ring from the test's goroutine. r: a ring without record. c: a control. d: the sink drains.
	// i: a record is put and rung for while a turn runs, after that turn looked.
	const alphabet, depth = "prcdi", 4
	total := 1
	for range depth {
		total *= len(alphabet)
	}
	for n := range total {
		synctest.Test(t, func(t *testing.T) {
			r := started(t, 1, nil)
			var put, got, inside []int64
			r.script.polls(func(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
				status, err := r.script.emit(turn, out)
				r.script.mu.Lock()
				late := inside
				inside = nil
				r.script.mu.Unlock()
				if len(late) > 0 {
					r.script.put(late...)
				}
				return status, err
			})
			for i, rest := 0, n; i < depth; i, rest = i+1, rest/len(alphabet) {
				record := int64(i + 1)
				switch alphabet[rest%len(alphabet)] {
				case 'p':
					put = append(put, record)
					r.script.put(record)
				case 'r':
					r.script.ctx.NotifyAvailable()
				case 'c':
					r.offer(protocol.SourceEvent, eventPayload("e"))
				case 'd':
					r.settle()
					got = append(got, r.received()...)
				case 'i':
					put = append(put, record)
					r.script.mu.Lock()
					inside = append(inside, record)
					r.script.mu.Unlock()
					r.script.ctx.NotifyAvailable()
				}
				if n%2 == 0 {
					r.settle()
				}
			}
			for range 2 * depth {
				r.settle()
				got = append(got, r.received()...)
			}
			if !slices.Equal(slices.Sorted(slices.Values(got)), put) {
				t.Errorf("sequence %d: received %v, put %v; %s", n, got, put, r.log())
			}
		})
	}
}

// FLINK-37416 at the loop: the evidence of a finished split is in every snapshot until a checkpoint that contains it completes.
func TestEvidenceStaysUntilACheckpointContainsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.assign("a", "b")
		r.settle()
		r.barrier(1)
		r.script.polls(func(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
			r.script.polls(nil)
			delete(r.script.splits, "a")
			out.FinishSplit(split{"a", 42})
			return sdk.NothingAvailable, nil
		})
		r.script.ctx.NotifyAvailable()
		r.settle()
		complete := func(id sdk.CheckpointID) {
			r.offer(protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: id})
			r.settle()
		}
		complete(1) // taken before the split ended
		s := r.barrier(2)
		if got := splitIDs(s.Finished); !slices.Equal(got, []string{"a"}) || !slices.Equal(splitIDs(s.Splits), []string{"b"}) {
			t.Fatalf("checkpoint 2 has %v, finished %v", splitIDs(s.Splits), got)
		}
		if !strings.Contains(string(s.Finished[0].Data.Data), "42") {
			t.Errorf("the evidence is %s", s.Finished[0].Data.Data)
		}
		r.offer(protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: 2})
		if got := splitIDs(r.barrier(3).Finished); !slices.Equal(got, []string{"a"}) {
			t.Errorf("checkpoint 3 after the abort of 2 has finished %v", got)
		}
		complete(3)
		if got := r.barrier(4).Finished; len(got) != 0 {
			t.Errorf("checkpoint 4 still has finished %v", splitIDs(got))
		}
	})
}

// Nothing is read behind the barrier of a stop, until that stop is given up.
func TestStopBarrierEndsReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: 3, Kind: protocol.Stop})
		r.settle()
		r.forget()
		r.script.put(1)
		r.offer(protocol.SourceEvent, eventPayload("e"))
		r.offer(protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: 2})
		r.settle()
		r.want("behind the stop", "event e, aborted 2", "applied")
		r.offer(protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: 3})
		r.settle()
		if got := r.received(); !slices.Equal(got, []int64{-3, 1}) {
			t.Errorf("received %v", got)
		}
	})
}

// STIP reference implementation: the loop was not driven while closing, so the last barrier was never drained and every bounded
// job hung. A draining reader reads nothing more and serves everything.
func TestGracefulCloseStillServesBarriers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.offer(protocol.GracefulClose, protocol.GracefulClosePayload{})
		r.script.put(1)
		r.settle()
		r.barrier(1)
		r.offer(protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: 1})
		r.offer(protocol.GracefulClose, protocol.GracefulClosePayload{})
		r.settle()
		if got := r.received(); slices.Contains(got, 1) || !slices.Contains(got, -1) {
			t.Errorf("received %v", got)
		}
		if r.count("complete 1") != 1 || r.failed() != nil {
			t.Errorf("journal %s, failure %v", r.log(), r.failed())
		}
	})
}

// No turn runs during a schema change; its completion, told by the end or by the checkpoint, lets turns run again.
func TestSchemaChangeLetsNoTurnRun(t *testing.T) {
	t.Parallel()
	change := protocol.SchemaChangePayload{Checkpoint: 9, Request: 1}
	for name, end := range map[string]func(r *rig){
		"end":      func(r *rig) { r.offer(protocol.SchemaChangeEnd, change) },
		"complete": func(r *rig) { r.offer(protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: 9}) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 4, nil)
				r.offer(protocol.SchemaChangeBegin, change)
				r.script.put(1)
				r.offer(protocol.SchemaChangeEnd, protocol.SchemaChangePayload{Checkpoint: 8, Request: 1}) // another one: ignored
				r.offer(protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: 8})
				r.settle()
				if got := r.received(); len(got) != 0 {
					t.Errorf("received %v during the change", got)
				}
				end(r)
				r.settle()
				if got := r.received(); !slices.Equal(got, []int64{1}) {
					t.Errorf("received %v after it", got)
				}
			})
		})
	}
}

func TestSchemaChangeLatchesAClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.offer(protocol.SchemaChangeBegin, protocol.SchemaChangePayload{Checkpoint: 9, Request: 1})
		r.offer(protocol.GracefulClose, protocol.GracefulClosePayload{})
		r.offer(protocol.SchemaChangeEnd, protocol.SchemaChangePayload{Checkpoint: 9, Request: 1})
		r.script.put(1)
		r.settle()
		if got := r.received(); len(got) != 0 {
			t.Errorf("received %v although a close was latched", got)
		}
	})
}

// A request for a split that no coordinator took is told again when one registers the attempt, until splits come.
func TestRequestForASplitSurvivesTheCoordinator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, nil)
		r.script.when("Open", func() error { r.script.ctx.RequestSplit(); return nil })
		r.start() // no coordinator listens yet
		r.offer(protocol.Register, protocol.RegisterPayload{})
		r.settle()
		r.want("first coordinator", "request, registered 1, request", "poll", "new", "open")
		r.epoch, r.seq = 5, 0
		r.offer(protocol.Register, protocol.RegisterPayload{})
		r.settle()
		r.forget()
		r.assign("a")
		r.offer(protocol.Register, protocol.RegisterPayload{})
		r.settle()
		r.want("once splits came", "add a, registered 5", "poll", "applied")
	})
}
