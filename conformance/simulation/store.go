package simulation

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// store is the state directory of one life, and reads along: each manifest is checked against the ledger before it is
// written, and noted once it is durable.
type store struct {
	*checkpoint.FileStore
	of *life
}

var _ checkpoint.Storage = store{}

func (s store) Write(ctx context.Context, m *protocol.Manifest) (checkpoint.Info, error) {
	if !s.of.isDead() {
		s.of.checkManifest(m)
	}
	info, err := s.FileStore.Write(ctx, m)
	if err != nil {
		s.of.world.history.note("life %d: checkpoint %d is not stored: %v", s.of.number, m.ID, err)
		return info, err
	}
	s.of.world.durable(s.of, m)
	return info, nil
}

// Latest also sees what a write left behind of which nobody knew whether it would last.
func (s store) Latest(ctx context.Context) (*protocol.Manifest, checkpoint.Info, error) {
	m, info, err := s.FileStore.Latest(ctx)
	if err == nil {
		s.of.world.durable(s.of, m)
	}
	return m, info, err
}

// checkManifest checks that a cut is one: each split in one place, at the position that its output in the same cut ends at.
func (l *life) checkManifest(m *protocol.Manifest) {
	seen, rows := l.world.ledger.cut(m)
	if int64(rows) != m.Records {
		l.violate("checkpoint %d says that %d records are written, and holds %d", m.ID, m.Records, rows)
	}
	place := map[sdk.SplitID]string{}
	defer func() { l.note("checkpoint %d is cut: %d records, %v", m.ID, m.Records, place) }()
	for _, r := range m.Readers {
		for _, s := range r.Splits {
			l.checkSplit(m, seen, place, s, fmt.Sprintf("reader %d", r.Reader))
		}
		for _, s := range r.Finished {
			l.checkSplit(m, seen, place, s, fmt.Sprintf("what reader %d finished", r.Reader))
		}
		if n := len(r.Metadata.Lineage); n > 0 {
			l.world.attempt(l, r.Metadata.Lineage[n-1], r.Reader)
		}
	}
	l.checkTracker(m, place)
	if want := l.source.Capability(); m.Lane != protocol.LaneA || m.CapabilityDigest != want.Digest() {
		l.violate("checkpoint %d is of lane %s with digest %s", m.ID, m.Lane, m.CapabilityDigest)
	}
	for split, records := range seen {
		if n := l.prefix(m, split, records); m.Kind == protocol.Final && n != l.world.plan.Records {
			l.violate("final checkpoint %d holds %d records of split %d", m.ID, n, split)
		}
	}
}

// checkTracker checks that what is on its way to a reader is nowhere else.
func (l *life) checkTracker(m *protocol.Manifest, place map[sdk.SplitID]string) {
	for _, a := range m.Coordinator.Tracker {
		if arrived(m, a) {
			continue
		}
		for _, s := range a.Splits {
			if other, ok := place[s.ID]; ok {
				l.violate("checkpoint %d holds split %s on its way to reader %d and in %s", m.ID, s.ID, a.Reader, other)
			}
			place[s.ID] = fmt.Sprintf("on its way to reader %d", a.Reader)
		}
	}
}

// arrived reports that the reader's part of the same cut comes after the assignment.
func arrived(m *protocol.Manifest, a protocol.Assignment) bool {
	for _, r := range m.Readers {
		lineage := r.Metadata.Lineage
		if r.Reader != a.Reader || len(lineage) == 0 || lineage[len(lineage)-1] != a.Target {
			continue
		}
		for _, mark := range r.Metadata.Watermarks {
			if mark.Epoch == a.Epoch && a.Sequence <= mark.Applied && !slices.Contains(mark.Gaps, a.Sequence) {
				return true
			}
		}
	}
	return false
}

// checkSplit checks one split of a reader's part.
func (l *life) checkSplit(m *protocol.Manifest, seen [][]uint8, place map[sdk.SplitID]string, s protocol.Split, where string) {
	if other, ok := place[s.ID]; ok {
		l.violate("checkpoint %d holds split %s in %s and in %s", m.ID, s.ID, other, where)
	}
	place[s.ID] = where
	split, err := l.codec.Decode(s.Data.Version, s.Data.Data)
	if err != nil {
		l.violate("checkpoint %d: split %s in %s: %v", m.ID, s.ID, where, err)
		return
	}
	l.checkPosition(m, split, where, seen[split.Number])
}

func (l *life) checkPosition(m *protocol.Manifest, split fake.Split, where string, records []uint8) {
	if n := l.prefix(m, split.Number, records); n != split.Next {
		l.violate("checkpoint %d has split %d at record %d in %s, and output up to %d", m.ID, split.Number, split.Next, where, n)
	}
}

// prefix is how many records from the first are there once. There may be none behind them.
func (l *life) prefix(m *protocol.Manifest, split int, records []uint8) int64 {
	n := 0
	for n < len(records) && records[n] == 1 {
		n++
	}
	for i, times := range records[n:] {
		if times != 0 {
			l.violate("checkpoint %d holds record %d of split %d %d times, and record %d %d times", m.ID, n+i, split, times, n, records[n])
			break
		}
	}
	return int64(n)
}
