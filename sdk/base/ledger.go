package base

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// phase is where a known split stands. The numbers are part of the stored format.
type phase uint8

const (
	unknown  phase = iota // just learnt of, for the moment only; never stored
	gated                 // discovered, to be checkpointed before it is assigned
	waiting               // to be assigned
	assigned              // handed to a reader; the engine's tracker and that reader's state account for it
	finished              // ended, and a completed checkpoint says so
)

// forgetAfter is how many discoveries in a row must miss a finished split before its id is forgotten. It keeps the state
// of a system whose splits come and go in proportion to what exists, and is large enough that no gap in
// metadata makes a finished split start again.
const forgetAfter = 100

// maxAssign is how many splits one call of Assign carries: a few 100 KiB when splits are large, so that a backpressured
// engine can take part of a large set.
const maxAssign = 100

// nobody owns a split that is not assigned, or whose owner is not known after a restore.
const nobody = sdk.ReaderID(-1)

// ledger is the pure core of the enumerator: every split that was ever seen and not forgotten, each in exactly one phase.
// It has no context, clock or goroutine; the enumerator feeds it and does what it plans.
type ledger[S sdk.Split] struct {
	// firstDone says that a discovery has been recorded, also one that found nothing. Stored.
	firstDone bool
	entries   map[sdk.SplitID]*entry[S]
	// ascending holds the entries by id, rebuilt when stale and never changed in place: a worker may be reading its ids.
	ascending []*entry[S]
	stale     bool
	gates     []*entry[S] // gated, oldest first; may hold some that are not any more
	queue     []*entry[S] // to be assigned, oldest first; may hold some that are not any more
	gated     int
	owned     []int // assigned splits by reader
	placed    int
	rounds    uint64 // recorded discoveries in this epoch
}

// entry is a known split. id never changes.
type entry[S sdk.Split] struct {
	id     sdk.SplitID
	phase  phase
	queued bool
	// removed says that OnRemoved was told. Stored.
	removed bool
	split   S // while gated or waiting
	owner   sdk.ReaderID
	// contained is the first snapshot that holds a gated split, 0 while there is none.
	contained sdk.CheckpointID
	seen      uint64 // round
	missing   int    // rounds
}

func newLedger[S sdk.Split](parallelism int) *ledger[S] {
	return &ledger[S]{entries: make(map[sdk.SplitID]*entry[S]), owned: make([]int, parallelism)}
}

// round is the immutable input of a discovery. A worker reads it while phases go on changing, so those are copied.
func (l *ledger[S]) round() Round {
	known := l.sorted()
	unfinished := make([]sdk.SplitID, 0, len(known))
	for _, e := range known {
		if e.phase != finished {
			unfinished = append(unfinished, e.id)
		}
	}
	return Round{First: !l.firstDone, Unfinished: slices.Values(unfinished), Known: func(id sdk.SplitID) bool {
		_, ok := slices.BinarySearchFunc(known, id, func(e *entry[S], id sdk.SplitID) int {
			return strings.Compare(string(e.id), string(id))
		})
		return ok
	}}
}

func (l *ledger[S]) sorted() []*entry[S] {
	if l.stale {
		l.stale = false
		l.ascending = make([]*entry[S], 0, len(l.entries))
		for _, e := range l.entries {
			l.ascending = append(l.ascending, e)
		}
		slices.SortFunc(l.ascending, func(a, b *entry[S]) int { return strings.Compare(string(a.id), string(b.id)) })
	}
	return l.ascending
}

func (l *ledger[S]) learn(id sdk.SplitID) *entry[S] {
	e := &entry[S]{id: id, owner: nobody}
	l.entries[id] = e
	l.stale = true
	return e
}

// enter moves e to a phase and keeps the counts.
func (l *ledger[S]) enter(e *entry[S], to phase, owner sdk.ReaderID) {
	if e.phase == assigned && e.owner != nobody {
		l.owned[e.owner]--
	}
	if e.phase == gated {
		l.gated--
	}
	e.phase, e.owner = to, owner
	switch to {
	case unknown:
	case gated:
		l.gated++
		l.gates = append(l.gates, e)
	case waiting:
		if !e.queued {
			e.queued = true
			l.queue = append(l.queue, e)
		}
	case assigned:
		if owner != nobody {
			l.owned[owner]++
		}
	case finished:
	}
	if to == assigned || to == finished {
		var none S
		e.split = none
	}
}

// discovered records a complete list of what exists. found were not known, removed are known but gone, each told once.
func (l *ledger[S]) discovered(splits []S, durable bool) (found, removed []sdk.SplitID, err error) {
	if err := checkDiscovered(splits); err != nil {
		return nil, nil, err
	}
	l.rounds++
	l.firstDone = true
	for _, split := range splits {
		id := split.SplitID()
		e := l.entries[id]
		if e == nil {
			e = l.learn(id)
			e.split = split
			if durable {
				l.enter(e, gated, nobody)
			} else {
				l.enter(e, waiting, nobody)
			}
			found = append(found, id)
		}
		e.seen, e.missing, e.removed = l.rounds, 0, false
	}
	for _, e := range l.sorted() {
		if e.seen == l.rounds {
			continue
		}
		e.missing++
		switch {
		case e.phase == finished:
			if e.missing >= forgetAfter {
				delete(l.entries, e.id)
				l.stale = true
			}
		case !e.removed:
			e.removed = true
			removed = append(removed, e.id)
		}
	}
	return found, removed, nil
}

func checkDiscovered[S sdk.Split](splits []S) error {
	ids := make(map[sdk.SplitID]struct{}, len(splits))
	for _, split := range splits {
		id := split.SplitID()
		if err := checkSplitID(id); err != nil {
			return err
		}
		if _, twice := ids[id]; twice {
			return fmt.Errorf("split %q was discovered twice in one list: ids must be unique", id)
		}
		ids[id] = struct{}{}
	}
	return nil
}

// registered takes over what a new reader attempt holds. Held splits are taken out of whatever phase a restored, older
// state has them in. What an earlier attempt of the reader was given and this one lacks has no owner until it is returned.
func (l *ledger[S]) registered(info sdk.ReaderInfo) error {
	if info.ID < 0 || int(info.ID) >= len(l.owned) {
		return fmt.Errorf("reader %d registered, but the parallelism is %d", info.ID, len(l.owned))
	}
	if l.owned[info.ID] > 0 {
		for _, e := range l.entries {
			if e.phase == assigned && e.owner == info.ID {
				l.enter(e, assigned, nobody)
			}
		}
	}
	for _, id := range info.Splits {
		e := l.entries[id]
		if e == nil {
			e = l.learn(id)
		}
		l.enter(e, assigned, info.ID)
	}
	// What the reader finished beyond the restored state is nobody else's either. The engine returns it when the reader fails
	// before a completed checkpoint contains its end, and tells of its end when one does.
	for _, id := range info.Finished {
		e := l.entries[id]
		if e == nil {
			e = l.learn(id)
		}
		if e.phase != finished {
			l.enter(e, assigned, info.ID)
		}
	}
	return nil
}

// returned takes splits back at the position they are given back at. They were assigned once, so they need no gate. A
// finished split stays finished: a completed checkpoint contains its end.
func (l *ledger[S]) returned(splits []S) (ignored []sdk.SplitID) {
	for _, split := range splits {
		id := split.SplitID()
		e := l.entries[id]
		switch {
		case e == nil:
			e = l.learn(id)
		case e.phase == finished:
			ignored = append(ignored, id)
			continue
		}
		e.split = split
		l.enter(e, waiting, nobody)
	}
	return ignored
}

// ended records finished splits; it may be told twice, and of splits that a restored state still holds.
func (l *ledger[S]) ended(splits []S) {
	for _, split := range splits {
		e := l.entries[split.SplitID()]
		if e == nil {
			e = l.learn(split.SplitID())
		}
		if e.phase != finished {
			l.enter(e, finished, nobody)
		}
	}
}

// snapshotted notes which gated splits a snapshot holds.
func (l *ledger[S]) snapshotted(id sdk.CheckpointID) {
	for _, e := range l.gates {
		if e.phase == gated && e.contained == 0 {
			e.contained = id
		}
	}
}

// completed opens the gate for the splits that a completed checkpoint contains. Those discovered after its snapshot stay.
func (l *ledger[S]) completed(id sdk.CheckpointID) {
	l.open(func(e *entry[S]) bool { return e.contained != 0 && e.contained <= id })
}

// open lets gated splits through, oldest first.
func (l *ledger[S]) open(may func(*entry[S]) bool) {
	l.gates = slices.DeleteFunc(l.gates, func(e *entry[S]) bool {
		if e.phase == gated && may(e) {
			l.enter(e, waiting, nobody)
		}
		return e.phase != gated
	})
}

// uncontained reports gated splits that no snapshot holds yet.
func (l *ledger[S]) uncontained() bool {
	return slices.ContainsFunc(l.gates, func(e *entry[S]) bool { return e.phase == gated && e.contained == 0 })
}

// assignment is one planned call of Assign.
type assignment[S sdk.Split] struct {
	reader  sdk.ReaderID
	splits  []S
	entries []*entry[S]
}

// halves cuts an assignment of more than one split in two.
func (a assignment[S]) halves() (first, second assignment[S]) {
	n := len(a.splits) / 2
	return assignment[S]{a.reader, a.splits[:n:n], a.entries[:n]}, assignment[S]{a.reader, a.splits[n:], a.entries[n:]}
}

// plan places what waits. It changes nothing: what was taken is told by took, what was refused is planned again.
func (l *ledger[S]) plan(choose Strategy[S], readers []sdk.ReaderID) ([]assignment[S], error) {
	l.queue = slices.DeleteFunc(l.queue, func(e *entry[S]) bool {
		e.queued = e.phase == waiting
		return !e.queued
	})
	if len(l.queue) == 0 || len(readers) == 0 {
		return nil, nil
	}
	p := Placement{Parallelism: len(l.owned), Readers: readers, Owned: slices.Clone(l.owned), Placed: l.placed, least: new(leastOwner)}
	open := make([]assignment[S], len(l.owned)) // the call that is being filled for each reader
	here := make([]bool, len(l.owned))
	for _, r := range readers {
		here[r] = true
	}
	var plan []assignment[S]
	for _, e := range l.queue {
		r := choose(e.split, p)
		if r < 0 || int(r) >= len(l.owned) {
			return nil, fmt.Errorf("the strategy placed split %q on reader %d, but the parallelism is %d", e.id, r, len(l.owned))
		}
		if !here[r] {
			continue
		}
		p.Owned[r]++
		p.Placed++
		a := &open[r]
		a.reader, a.splits, a.entries = r, append(a.splits, e.split), append(a.entries, e)
		if len(a.splits) == maxAssign {
			plan = append(plan, *a)
			*a = assignment[S]{}
		}
	}
	for _, a := range open {
		if len(a.splits) > 0 {
			plan = append(plan, a)
		}
	}
	return plan, nil
}

// took records that the engine took an assignment.
func (l *ledger[S]) took(a assignment[S]) {
	for _, e := range a.entries {
		l.enter(e, assigned, a.reader)
	}
	l.placed += len(a.entries)
}

// unassigned is how many splits wait, gated ones included.
func (l *ledger[S]) unassigned() int {
	n := l.gated
	for _, e := range l.queue {
		if e.phase == waiting {
			n++
		}
	}
	return n
}
