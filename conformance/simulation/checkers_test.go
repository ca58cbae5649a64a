package simulation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// A checker that never complains proves nothing. Each case does one wrong thing to a small world, and one right thing.
func TestCheckersSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	rows := func(split int, from, to int64) (out []ledgerRow) {
		for i := from; i < to; i++ {
			out = append(out, ledgerRow{split: split, record: i})
		}
		return out
	}
	manifest := func(id sdk.CheckpointID, records, next int64, parts ...string) *protocol.Manifest {
		m := &protocol.Manifest{ID: id, Kind: protocol.Periodic, Parallelism: 1, Records: records, Lane: protocol.LaneA}
		m.CapabilityDigest = (&fake.Source{}).Capability().Digest()
		data, _ := (&fake.Source{}).SplitCodec().Encode(fake.Split{Number: 0, Next: next, End: 10})
		m.Readers = []protocol.ReaderState{{Splits: []protocol.Split{{ID: "fake-0", Data: sdk.VersionedBytes{Version: 1, Data: data}}}}}
		s := protocol.SinkState{}
		for _, p := range parts {
			s.Prepared = append(s.Prepared, protocol.Prepared{Checkpoint: id, Data: []byte(p)})
		}
		m.Sinks = []protocol.SinkState{s}
		return m
	}
	for name, c := range map[string]struct {
		do   func(w *world, l *life)
		want string // empty: nothing is wrong
	}{
		"a good checkpoint": {func(w *world, l *life) {
			part := string(w.ledger.prepare(l, 0, 1, 1, rows(0, 0, 4)))
			m := manifest(1, 4, 4, part)
			l.checkManifest(m)
			w.durable(l, m)
			_ = w.ledger.commit(part)
			_ = w.ledger.commit(part)
		}, ""},
		"visible without a checkpoint": {func(w *world, l *life) {
			_ = w.ledger.commit(string(w.ledger.prepare(l, 0, 1, 1, rows(0, 0, 4))))
		}, "no durable checkpoint holds it"},
		"visible twice": {func(w *world, l *life) {
			for id := range sdk.CheckpointID(2) {
				part := string(w.ledger.prepare(l, 0, 1, id+1, rows(0, 0, 4)))
				w.durable(l, manifest(id+1, 4, 4, part))
				_ = w.ledger.commit(part)
			}
		}, "is visible 2 times"},
		"out of order": {func(w *world, l *life) {
			w.ledger.prepare(l, 0, 1, 1, append(rows(0, 3, 4), rows(0, 1, 2)...))
		}, "record 1 of split 0 follows record 3"},
		"a part that is needed is discarded": {func(w *world, l *life) {
			part := string(w.ledger.prepare(l, 0, 1, 1, rows(0, 0, 4)))
			w.durable(l, manifest(1, 4, 4, part))
			w.ledger.discardRest()
		}, "which a durable checkpoint holds"},
		"a part of nobody": {func(w *world, _ *life) { _ = w.ledger.commit("x") }, "unknown part"},
		"a wrong count": {func(w *world, l *life) {
			l.checkManifest(manifest(1, 5, 4, string(w.ledger.prepare(l, 0, 1, 1, rows(0, 0, 4)))))
		}, "says that 5 records are written, and holds 4"},
		"a position ahead of the output": {func(w *world, l *life) {
			l.checkManifest(manifest(1, 4, 6, string(w.ledger.prepare(l, 0, 1, 1, rows(0, 0, 4)))))
		}, "has split 0 at record 6"},
		"a gap": {func(w *world, l *life) {
			l.checkManifest(manifest(1, 3, 0, string(w.ledger.prepare(l, 0, 1, 1, rows(0, 1, 4)))))
		}, "and record 0 0 times"},
		"a split in two places": {func(_ *world, l *life) {
			m := manifest(1, 0, 0)
			m.Readers = append(m.Readers, m.Readers[0])
			l.checkManifest(m)
		}, "holds split fake-0 in"},
		"a number twice": {func(w *world, l *life) {
			w.ledger.opened(7, "one")
			w.ledger.opened(7, "another")
			w.ledger.prepare(l, 0, 1, 1, nil)
			w.ledger.prepare(&life{number: 1, plan: l.plan}, 0, 2, 1, nil)
		}, "attempt 7"},
		"an older checkpoint comes back": {func(w *world, l *life) {
			w.durable(l, manifest(2, 0, 0))
			w.durable(l, manifest(1, 0, 0))
		}, "after checkpoint 2"},
		"two owners": {func(_ *world, l *life) {
			o := &owners{of: l, reader: map[sdk.SplitID]*readerOf{}}
			o.take(newReaderOf(l, o, 0), []fake.Split{{Number: 0}})
			o.take(newReaderOf(l, o, 1), []fake.Split{{Number: 0}})
		}, "is given to reader 1 while reader 0 has it"},
		"an owner that is over": {func(_ *world, l *life) {
			o := &owners{of: l, reader: map[sdk.SplitID]*readerOf{}}
			old := newReaderOf(l, o, 0)
			o.take(old, []fake.Split{{Number: 0}})
			old.mark(moment{}, true)
			o.take(newReaderOf(l, o, 1), []fake.Split{{Number: 0}})
		}, ""},
		"the same split twice": {func(_ *world, l *life) {
			o := &owners{of: l, reader: map[sdk.SplitID]*readerOf{}}
			r := newReaderOf(l, o, 0)
			o.take(r, []fake.Split{{Number: 0}})
			o.take(r, []fake.Split{{Number: 0}})
		}, "is given to reader 0 twice"},
		"two goroutines in one reader": {func(_ *world, l *life) {
			r := newReaderOf(l, &owners{of: l, reader: map[sdk.SplitID]*readerOf{}}, 0)
			r.begin()
			r.begin()
		}, "while it is in a call"},
		"on its way and there": {func(_ *world, l *life) {
			m := manifest(1, 0, 0)
			m.Coordinator.Tracker = []protocol.Assignment{{Reader: 0, Target: 1, Epoch: 1, Sequence: 2, Splits: m.Readers[0].Splits}}
			l.checkManifest(m)
		}, "on its way to reader 0 and in reader 0"},
		"arrived": {func(_ *world, l *life) {
			m := manifest(1, 0, 0)
			m.Coordinator.Tracker = []protocol.Assignment{{Reader: 0, Target: 1, Epoch: 1, Sequence: 2, Splits: m.Readers[0].Splits}}
			m.Readers[0].Metadata = protocol.Metadata{Lineage: []protocol.Attempt{1}, Watermarks: []protocol.Watermark{{Epoch: 1, Applied: 2}}}
			l.checkManifest(m)
		}, ""},
		"another capability": {func(_ *world, l *life) {
			m := manifest(1, 0, 0)
			m.CapabilityDigest = "x"
			l.checkManifest(m)
		}, "with digest x"},
		"commands out of order": {func(_ *world, l *life) {
			admit(l, 1, 2)
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 2})
		}, "before 1, which was admitted earlier"},
		"commands in order, after the turn that ran": {func(_ *world, l *life) {
			admit(l, 1, 2)
			l.order.begins(seam.At{Attempt: 1})
			l.order.turn(0)
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 1})
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 2})
		}, ""},
		"a command that waits for turns": {func(_ *world, l *life) {
			admit(l, 1)
			l.order.begins(seam.At{Attempt: 1})
			l.order.turn(0)
			l.order.turn(0)
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 1})
		}, "began 2 turns before it applied"},
		"a command twice": {func(_ *world, l *life) {
			admit(l, 1)
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 1})
			l.order.applied(seam.At{Attempt: 1, Epoch: 1, Sequence: 1})
		}, "which waits for nothing"},
		"a second delivery that is admitted": {func(_ *world, l *life) {
			l.plan.Duplicates = 1
			for seq := range protocol.Sequence(20) { // half of them are delivered again at once
				l.network.offer(0, &protocol.Envelope{Kind: protocol.AddSplits, Sequence: seq}, accepted)
			}
		}, "its second delivery is"},
		"something is missing at the end": {func(w *world, _ *life) { w.ledger.complete() }, "is visible 0 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Plan{Splits: 1, Records: 10, Lives: []LifePlan{{Exchange: "forward"}}}
			h := newHistory()
			w := &world{plan: p, history: h, ledger: newLedger(p, h), attempts: map[protocol.Attempt]attemptOf{}}
			l := newLifeOf(w, 0, &p.Lives[0])
			l.source, l.codec = &source{Source: &fake.Source{}}, (&fake.Source{}).SplitCodec()
			synctest.Test(t, func(*testing.T) { c.do(w, l) })
			found := h.violations()
			if c.want == "" && len(found) > 0 {
				t.Errorf("complains without a reason: %q", found)
			}
			if c.want != "" && !slices.ContainsFunc(found, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("want a complaint about %q, got %q", c.want, found)
			}
		})
	}
}

func accepted(*protocol.Envelope) protocol.Ack { return protocol.Ack{Status: protocol.Accepted} }

// admit lets attempt 1 admit commands of epoch 1.
func admit(l *life, seqs ...protocol.Sequence) {
	for _, seq := range seqs {
		e := &protocol.Envelope{Epoch: 1, Target: 1, Sequence: seq, Kind: protocol.AddSplits}
		l.order.offered(e, accepted)(e)
	}
}

// What a dead life does changes nothing.
func TestTheDeadChangeNothing(t *testing.T) {
	t.Parallel()
	p := NewPlan(1)
	h := newHistory()
	w := &world{plan: p, history: h, ledger: newLedger(p, h), attempts: map[protocol.Attempt]attemptOf{}}
	l := newLifeOf(w, 0, &p.Lives[0])
	l.die("in a test")
	if err := w.ledger.under(l, func() error { t.Error("a dead life reached the ledger"); return nil }); err == nil {
		t.Error("a dead life was not told")
	}
}
