package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/protocol"
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
		m := &protocol.Manifest{ID: id, Kind: protocol.Periodic, Parallelism: 1, Records: records}
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
			o.take(&readerOf{of: l, owners: o, task: 0}, []fake.Split{{Number: 0}})
			o.take(&readerOf{of: l, owners: o, task: 1}, []fake.Split{{Number: 0}})
		}, "is given to reader 1 while reader 0 has it"},
		"an owner that is over": {func(_ *world, l *life) {
			o := &owners{of: l, reader: map[sdk.SplitID]*readerOf{}}
			old := &readerOf{of: l, owners: o, task: 0}
			o.take(old, []fake.Split{{Number: 0}})
			old.mark(time.Time{}, true)
			o.take(&readerOf{of: l, owners: o, task: 1}, []fake.Split{{Number: 0}})
		}, ""},
		"something is missing at the end": {func(w *world, _ *life) { w.ledger.complete() }, "is visible 0 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Plan{Splits: 1, Records: 10, Lives: []LifePlan{{Exchange: "forward"}}}
			h := newHistory()
			w := &world{plan: p, history: h, ledger: newLedger(p, h), attempts: map[protocol.Attempt]attemptOf{}}
			l := newLifeOf(w, 0, &p.Lives[0])
			l.codec = (&fake.Source{}).SplitCodec()
			c.do(w, l)
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
