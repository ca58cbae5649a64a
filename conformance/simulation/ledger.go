package simulation

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// ledger is the system that all lives write to. It outlives them, keeps what is visible apart from what is only prepared, and
// checks every change: it believes nothing that the engine says but what it found in a durable checkpoint.
type ledger struct {
	plan    *Plan
	history *history
	mu      struct {
		sync.Mutex
		parts    map[string]*ledgerPart
		covered  map[string]bool // parts that a durable checkpoint holds
		visible  [][]uint8       // how often each record of each split is visible
		next     []int64         // of each split, when lives are ordered
		rows     int
		attempts map[int64]string
		cuts     map[sdk.CheckpointID]int // the life that prepared for a checkpoint
		named    int
		digest   uint64 // of everything visible, in whatever order
	}
}

type ledgerRow struct {
	split  int
	record int64
	sum    uint64 // of key and value
}

// ledgerPart is what one Prepare made durable.
type ledgerPart struct {
	name       string
	checkpoint sdk.CheckpointID
	rows       []ledgerRow
	state      partState
}

type partState uint8

const (
	partPrepared partState = iota
	partCommitted
	partDiscarded
)

func (s partState) String() string { return [...]string{"prepared", "committed", "discarded"}[s] }

func newLedger(p *Plan, h *history) *ledger {
	l := &ledger{plan: p, history: h}
	l.mu.parts, l.mu.covered = map[string]*ledgerPart{}, map[string]bool{}
	l.mu.attempts, l.mu.cuts = map[int64]string{}, map[sdk.CheckpointID]int{}
	l.mu.next = make([]int64, p.splits())
	for range p.splits() {
		l.mu.visible = append(l.mu.visible, make([]uint8, p.Records))
	}
	return l
}

// under runs f as one step of the life, or not at all once that is dead.
func (l *ledger) under(of *life, f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.dead {
		return errDead
	}
	return f()
}

func (l *ledger) rows() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.rows
}

// opened checks that an attempt number is used once.
func (l *ledger) opened(attempt int64, who string) {
	if other, ok := l.mu.attempts[attempt]; ok {
		l.history.violate("attempt %d is %s and was %s", attempt, who, other)
	}
	l.mu.attempts[attempt] = who
}

// prepare keeps rows. With the forward exchange those of one split follow on each other.
func (l *ledger) prepare(of *life, task int, attempt int64, id sdk.CheckpointID, rows []ledgerRow) []byte {
	if other, ok := l.mu.cuts[id]; ok && other != of.number {
		l.history.violate("checkpoint number %d of life %d was used by life %d", id, of.number, other)
	}
	l.mu.cuts[id] = of.number
	if len(rows) == 0 {
		return nil
	}
	l.mu.named++
	name := fmt.Sprintf("%d-%d-%d-%d-%d", of.number, task, attempt, id, l.mu.named)
	l.mu.parts[name] = &ledgerPart{name: name, checkpoint: id, rows: rows}
	if of.plan.Exchange == "forward" {
		last := map[int]int64{}
		for _, r := range rows {
			if before, ok := last[r.split]; ok && r.record != before+1 {
				l.history.violate("part %s: record %d of split %d follows record %d", name, r.record, r.split, before)
			}
			last[r.split] = r.record
		}
	}
	return []byte(name)
}

// commit makes a part visible. Twice is once.
func (l *ledger) commit(name string) error {
	p := l.mu.parts[name]
	switch {
	case p == nil:
		l.history.violate("commit of the unknown part %q", name)
		return sdk.Fatalf("unknown part %q", name)
	case p.state == partCommitted:
		return nil
	case p.state == partDiscarded:
		l.history.violate("commit of part %s, which was discarded", name)
		return sdk.Fatalf("part %s was discarded", name)
	case !l.mu.covered[name]:
		l.history.violate("part %s becomes visible, and no durable checkpoint holds it", name)
	}
	p.state = partCommitted
	for _, r := range p.rows {
		l.mu.visible[r.split][r.record]++
		if n := l.mu.visible[r.split][r.record]; n > 1 {
			l.history.violate("record %d of split %d is visible %d times, now by part %s", r.record, r.split, n, name)
		}
		if l.plan.ordered() && r.record != l.mu.next[r.split] {
			l.history.violate("record %d of split %d becomes visible by part %s, and record %d was due", r.record, r.split, name, l.mu.next[r.split])
		}
		l.mu.next[r.split] = r.record + 1
		l.mu.digest += rowDigest(r)
	}
	l.mu.rows += len(p.rows)
	return nil
}

func (l *ledger) discard(name, why string) {
	p := l.mu.parts[name]
	switch {
	case p == nil:
		l.history.violate("discard (%s) of the unknown part %q", why, name)
	case p.state == partCommitted:
		l.history.violate("discard (%s) of part %s, which is committed", why, name)
	case l.mu.covered[name]:
		l.history.violate("discard (%s) of part %s, which a durable checkpoint holds", why, name)
	default:
		p.state = partDiscarded
	}
}

// discardRest discards everything that is only prepared.
func (l *ledger) discardRest() {
	for name, p := range l.mu.parts {
		if p.state == partPrepared {
			l.discard(name, "restore")
		}
	}
}

// cover notes that a checkpoint is durable.
func (l *ledger) cover(m *protocol.Manifest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range m.Sinks {
		for _, p := range s.Prepared {
			l.mu.covered[string(p.Data)] = true
		}
	}
}

// cut is what a checkpoint makes visible: how often each record of each split, together with what is visible already.
func (l *ledger) cut(m *protocol.Manifest) (seen [][]uint8, rows int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.mu.visible {
		seen = append(seen, bytes.Clone(v))
	}
	rows = l.mu.rows
	for _, s := range m.Sinks {
		for _, held := range s.Prepared {
			p := l.mu.parts[string(held.Data)]
			switch {
			case p == nil:
				l.history.violate("checkpoint %d holds the unknown part %q", m.ID, held.Data)
			case p.state == partDiscarded:
				l.history.violate("checkpoint %d holds part %s, which was discarded", m.ID, p.name)
			case p.state == partPrepared:
				for _, r := range p.rows {
					seen[r.split][r.record]++
				}
				rows += len(p.rows)
			}
		}
	}
	return seen, rows
}

// complete checks that everything is visible once.
func (l *ledger) complete() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for split, records := range l.mu.visible {
		for i, n := range records {
			if n != 1 {
				l.history.violate("at the end record %d of split %d is visible %d times", i, split, n)
				break
			}
		}
	}
	for name := range l.mu.covered {
		if p := l.mu.parts[name]; p == nil || p.state != partCommitted {
			l.history.violate("at the end part %s of a durable checkpoint is not visible", name)
		}
	}
}

// rowOf checks a record against what the source made.
func (l *ledger) rowOf(r *sdk.Record) (ledgerRow, error) {
	split, i, err := fake.ParseValue(r.Value)
	switch {
	case err != nil:
		return ledgerRow{}, err
	case r.Offset != i || string(r.Split) != "fake-"+strconv.Itoa(split) || split >= l.plan.splits() || i >= l.plan.Records:
		return ledgerRow{}, fmt.Errorf("record %d of split %s has the value of record %d of split %d", r.Offset, r.Split, i, split)
	}
	return ledgerRow{split, i, hashBytes(hashBytes(hashSeed, r.Key), r.Value)}, nil
}

// Digest is what the output of the plan's input has to be, whatever happens to the job: see [Report].
func (p *Plan) Digest() uint64 {
	c := p.Lives[0].Source
	sum := uint64(0)
	for split := range p.splits() {
		for i := range p.Records {
			r := c.Record(split, i)
			sum += rowDigest(ledgerRow{split, i, hashBytes(hashBytes(hashSeed, r.Key), r.Value)})
		}
	}
	return sum
}

func rowDigest(r ledgerRow) uint64 { return mix(r.sum ^ mix(uint64(r.split)<<32|uint64(r.record))) }
