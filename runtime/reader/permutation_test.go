package reader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// specimen is one command of a kind, and how its effect shows.
type specimen struct {
	payload protocol.Payload
	line    string                            // in the journal
	in      func(s protocol.ReaderState) bool // in a snapshot; nil when a snapshot does not show it
}

func has(ids []string, id string) bool { return slices.Contains(ids, id) }

// specimens has one of every kind. which tells two commands of the same kind apart, where their effect can.
func specimens(which string) map[protocol.CommandKind]specimen {
	n := uint64(len(which))
	return map[protocol.CommandKind]specimen{
		protocol.Register: {protocol.RegisterPayload{}, "registered 1", nil},
		protocol.AddSplits: {
			splitsPayload(sdk.SplitID("split-" + which)), "add split-" + which,
			func(s protocol.ReaderState) bool { return has(splitIDs(s.Splits), "split-"+which) },
		},
		protocol.NoMoreSplits: {
			protocol.NoMoreSplitsPayload{Generation: n},
			"no more splits",
			func(s protocol.ReaderState) bool { return s.Metadata.NoMoreSplitsGeneration >= n },
		},
		protocol.SourceEvent:        {eventPayload(which), "event " + which, nil},
		protocol.PauseOrResume:      {protocol.PauseOrResumePayload{Pause: []sdk.SplitID{sdk.SplitID(which)}}, fmt.Sprintf("pause [%s] resume []", which), nil},
		protocol.CheckpointComplete: {protocol.CheckpointPayload{Checkpoint: sdk.CheckpointID(10 + n)}, fmt.Sprintf("complete %d", 10+n), nil},
		protocol.CheckpointAborted:  {protocol.CheckpointPayload{Checkpoint: sdk.CheckpointID(10 + n)}, fmt.Sprintf("aborted %d", 10+n), nil},
		protocol.GracefulClose:      {protocol.GracefulClosePayload{}, "", nil},
		protocol.SchemaChangeBegin:  {protocol.SchemaChangePayload{Checkpoint: 90, Request: 1}, "", nil},
		protocol.SchemaChangeEnd:    {protocol.SchemaChangePayload{Checkpoint: 90, Request: 1}, "", nil},
		protocol.Barrier: {
			protocol.BarrierPayload{Checkpoint: sdk.CheckpointID(100 + n), Kind: protocol.Periodic}, fmt.Sprintf("acknowledged %d", 100+n), nil,
		},
	}
}

// manner is how a pair reaches the mailbox.
type manner string

const (
	inOrder    manner = "in order"
	duplicated manner = "each twice"
	crossing   manner = "the first one's retry crosses" // a has the lower sequence and is admitted second
)

// TestAllAdjacentPermutations: every ordered pair of command kinds, the barrier among them, admitted back to back while a turn
// runs, in order, with every delivery repeated, and with a retry that crosses. Effects come in the order of admission, each
// once; what was admitted before a barrier is in its snapshot and below its watermark, and what came after is in neither
// (FLINK-21996, FLINK-28606: an event in flight around the barrier, both directions).
func TestAllAdjacentPermutations(t *testing.T) {
	t.Parallel()
	for _, how := range []manner{inOrder, duplicated, crossing} {
		for _, a := range protocol.Kinds() {
			for _, b := range protocol.Kinds() {
				t.Run(fmt.Sprintf("%s/%s then %s", how, a, b), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { permute(t, a, b, how) })
				})
			}
		}
	}
}

func permute(t *testing.T, a, b protocol.CommandKind, how manner) {
	r := started(t, 8, nil)
	first, second := specimens("x")[a], specimens("yy")[b]
	release := r.hold()
	r.forget()
	ea, eb := r.envelope(a, first.payload), r.envelope(b, second.payload)
	if how == crossing {
		ea.Sequence, eb.Sequence = eb.Sequence, ea.Sequence
	}
	for _, e := range []*protocol.Envelope{ea, eb} {
		r.admit(e)
		if how != duplicated {
			continue
		}
		for range 2 { // the acknowledgement was lost, twice
			if ack := r.loop.Mailbox().Offer(e); ack.Status != protocol.Duplicate {
				t.Errorf("a repeated %s is %+v", e.Kind, ack)
			}
		}
	}
	release()
	r.settle()
	if r.failed() != nil {
		t.Fatalf("failed: %v", r.failed())
	}
	checkEffects(t, r, first.line, second.line)
	for _, c := range []struct {
		barrier, other *protocol.Envelope
		effect         specimen
		before         bool
	}{{eb, ea, first, true}, {ea, eb, second, false}} {
		if c.barrier.Kind == protocol.Barrier && c.other.Kind != protocol.Barrier {
			checkCut(t, r, c.barrier, c.other, c.effect, c.before)
		}
	}
}

// checkEffects finds both lines once, in order, and a turn after them where one may run.
func checkEffects(t *testing.T, r *rig, first, second string) {
	t.Helper()
	journal := strings.Split(r.log("poll", "applied", "snapshot"), ", ")
	var want []string
	for _, line := range []string{first, second} {
		if line != "" {
			want = append(want, line)
		}
	}
	if got := slices.DeleteFunc(journal, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
		t.Errorf("effects are %q, want %q", got, want)
	}
}

// checkCut looks at the acknowledged state: whether the other command is in it, and what the watermark says of it.
func checkCut(t *testing.T, r *rig, barrier, other *protocol.Envelope, effect specimen, before bool) {
	t.Helper()
	s := r.lastState()
	w := s.Metadata.Watermarks[0]
	covers := other.Sequence <= w.Applied && !slices.Contains(w.Gaps, other.Sequence)
	if covers != before {
		t.Errorf("%s is before the barrier: %t; the watermark %s covers it: %t", other.Kind, before, mark(w), covers)
	}
	if barrier.Sequence > w.Applied || slices.Contains(w.Gaps, barrier.Sequence) {
		t.Errorf("the watermark %s does not cover the barrier %d itself", mark(w), barrier.Sequence)
	}
	if effect.in != nil && effect.in(s) != before {
		t.Errorf("%s is before the barrier: %t; the snapshot shows it: %t", other.Kind, before, !before)
	}
}

// Records and the state that covers them are complete within one turn: a barrier that arrives in the middle of a turn is behind
// all that the turn emits, and its snapshot covers exactly that.
func TestBarrierDuringATurnIsBehindItsRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 8, nil)
		r.assign("a")
		r.settle()
		r.script.polls(func(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
			r.script.polls(nil)
			for n := range int64(3) {
				if n == 1 {
					r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
				}
				r.script.splits["a"] = n + 1
				out.Emit(sdk.Record{Offset: n})
			}
			return sdk.NothingAvailable, nil
		})
		r.script.ctx.NotifyAvailable()
		r.settle()
		if got := r.received(); !slices.Equal(got, []int64{0, 1, 2, -1}) {
			t.Errorf("received %v", got)
		}
		if got := string(r.lastState().Splits[0].Data.Data); got != `{"ID":"a","Pos":3}` {
			t.Errorf("the snapshot has %s", got)
		}
	})
}

// An old coordinator's command that was admitted before the new one's registration is applied before it and is part of the
// answer; one that comes later is refused at admission. Either way the new coordinator knows of it, or it never happens.
func TestOldEpochsCommandIsInTheAnswerOrNowhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 8, nil)
		release := r.hold()
		r.assign("early")
		late := r.envelope(protocol.AddSplits, splitsPayload("late"))
		r.epoch, r.seq = 5, 0
		r.offer(protocol.Register, protocol.RegisterPayload{})
		if ack := r.loop.Mailbox().Offer(late); ack.Status != protocol.StaleTarget {
			t.Errorf("the old epoch's late command: %+v", ack)
		}
		release()
		r.settle()
		r.mu.Lock()
		answer := r.answers[len(r.answers)-1]
		r.mu.Unlock()
		if got := ids(answer.Owned); !slices.Equal(got, []string{"early"}) || mark(answer.Watermark) != "5/1" {
			t.Errorf("the answer has %v at %s", got, mark(answer.Watermark))
		}
		if r.count("add late") != 0 {
			t.Error("the old epoch's late command was applied")
		}
	})
}

// The fence at apply does not lean on the one at admission: a command of an older epoch that is in the mailbox behind a newer
// registration has no effect, and is counted.
func TestOldEpochsCommandBehindARegistrationIsDiscarded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 8, nil)
		release := r.hold()
		r.assign("old")
		// The registration overtook it: as if admission had not known the newer epoch.
		r.loop.core.markApplied(r.sequenced(5, 1, protocol.Register, protocol.RegisterPayload{}))
		release()
		r.settle()
		if r.count("add old") != 0 || r.stats.StaleCommands.Value() != 1 {
			t.Errorf("%d stale commands; journal %s", r.stats.StaleCommands.Value(), r.log())
		}
	})
}
