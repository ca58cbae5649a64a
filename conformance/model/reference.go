package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// place is where a split is.
type place uint8

const (
	unassigned place = iota // with the enumerator
	sent                    // on its way to a reader
	held                    // with a reader
	ended                   // a reader ended it, and no completed checkpoint says so
	gone                    // ended for good
	limbo                   // with nobody: it has to come back to the enumerator
)

func (p place) String() string {
	return [...]string{"unassigned", "sent to", "held by", "ended by", "gone", "in limbo"}[p]
}

type spot struct {
	place  place
	reader sdk.ReaderID
	epoch  int // in which it was sent
}

// reference says where every split is, and what may happen to it.
type reference struct {
	where    map[sdk.SplitID]spot
	epoch    int
	last     *cut // the newest completed checkpoint
	pending  *cut
	problems []string
}

// cut is what a checkpoint contains.
type cut struct {
	id          sdk.CheckpointID
	unassigned  []sdk.SplitID
	held, ended map[sdk.SplitID]sdk.ReaderID
}

// newReference is a job that has discovered some splits.
func newReference(splits []sdk.SplitID) *reference {
	r := &reference{where: map[sdk.SplitID]spot{}, last: &cut{}}
	for _, id := range splits {
		r.where[id] = spot{}
	}
	return r
}

func (r *reference) wrong(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// move takes a split from one place to another.
func (r *reference) move(id sdk.SplitID, from place, by sdk.ReaderID, to spot) {
	at := r.where[id]
	if at.place != from || at.reader != by && (from == sent || from == held) {
		r.wrong("split %s is %s %d now, and it was %s %d", id, to.place, to.reader, at.place, at.reader)
	}
	r.where[id] = to
}

// dispatch, apply, end and giveBack are the life of a split.
func (r *reference) dispatch(id sdk.SplitID, to sdk.ReaderID) {
	r.move(id, unassigned, to, spot{sent, to, r.epoch})
}

func (r *reference) apply(id sdk.SplitID, by sdk.ReaderID) { r.move(id, sent, by, spot{held, by, 0}) }

func (r *reference) end(id sdk.SplitID, by sdk.ReaderID) { r.move(id, held, by, spot{ended, by, 0}) }
func (r *reference) giveBack(id sdk.SplitID)             { r.move(id, limbo, 0, spot{}) }

// register: a reader told a new epoch what it has. What the old one had sent and the reader has not applied never comes.
func (r *reference) register(reader sdk.ReaderID) {
	for id, at := range r.where {
		if at.place == sent && at.reader == reader && at.epoch < r.epoch {
			r.where[id] = spot{place: limbo}
		}
	}
}

// failReader: it goes on from the newest completed checkpoint.
func (r *reference) failReader(reader sdk.ReaderID) {
	for id, at := range r.where {
		if at.reader != reader || at.place != sent && at.place != held && at.place != ended {
			continue
		}
		r.where[id] = spot{place: limbo}
		if by, ok := r.last.held[id]; ok && by == reader {
			r.where[id] = spot{held, reader, 0}
		}
	}
}

// failCoordinator: readers keep what they have.
func (r *reference) failCoordinator() { r.epoch++ }

// failAll: everything goes on from the newest completed checkpoint, what readers held being with these now.
func (r *reference) failAll(now map[sdk.SplitID]sdk.ReaderID) {
	r.epoch++
	for id, at := range r.where {
		switch by, ok := now[id]; {
		case ok:
			r.where[id] = spot{held, by, 0}
		case at.place != gone:
			r.where[id] = spot{place: limbo}
		}
	}
	r.last.held = now // a reader that fails again goes on with these
}

// reconcile: a new epoch begins, and its enumerator has these splits: all that nobody has.
func (r *reference) reconcile(list []sdk.SplitID) {
	for _, id := range r.all(limbo, -1) {
		r.where[id] = spot{}
	}
	r.checkEnumerator("a new epoch", list)
}

// checkEnumerator checks what the enumerator has.
func (r *reference) checkEnumerator(when string, list []sdk.SplitID) {
	r.same(when+": the enumerator has", list, r.all(unassigned, -1))
}

// checkReader checks what a reader has.
func (r *reference) checkReader(when string, reader sdk.ReaderID, list []sdk.SplitID) {
	r.same(fmt.Sprintf("%s: reader %d has", when, reader), list, r.all(held, reader))
}

func (r *reference) same(what string, got, want []sdk.SplitID) {
	if got = slices.Sorted(slices.Values(got)); !slices.Equal(got, want) {
		r.wrong("%s %v, and should have %v", what, got, want)
	}
}

// all lists the splits at a place, of one reader or of any.
func (r *reference) all(p place, reader sdk.ReaderID) []sdk.SplitID {
	var out []sdk.SplitID
	for _, id := range slices.Sorted(maps.Keys(r.where)) {
		if at := r.where[id]; at.place == p && (reader < 0 || at.reader == reader) {
			out = append(out, id)
		}
	}
	return out
}

// snapshot: the enumerator is snapshotted.
func (r *reference) snapshot(id sdk.CheckpointID) {
	r.pending = &cut{id: id, held: map[sdk.SplitID]sdk.ReaderID{}, ended: map[sdk.SplitID]sdk.ReaderID{}}
	r.pending.unassigned = r.all(unassigned, -1)
}

// snapshotReader: a reader is snapshotted.
func (r *reference) snapshotReader(id sdk.CheckpointID, reader sdk.ReaderID) {
	if c := r.pending; c != nil && c.id == id {
		for s, at := range r.where {
			switch {
			case at.reader == reader && at.place == held:
				c.held[s] = reader
			case at.reader == reader && at.place == ended:
				c.ended[s] = reader
			}
		}
	}
}

// complete: the checkpoint stands. parts says what of it each reader's part holds and has ended.
func (r *reference) complete(parts map[sdk.ReaderID][2][]sdk.SplitID) {
	c := r.pending
	r.pending, r.last = nil, c
	for reader, part := range parts {
		for i, want := range []map[sdk.SplitID]sdk.ReaderID{c.held, c.ended} {
			fresh := slices.DeleteFunc(part[i], func(s sdk.SplitID) bool { return r.where[s].place == gone }) // whoever has not heard repeats it
			r.same(fmt.Sprintf("checkpoint %d: part %d of reader %d has", c.id, i, reader), fresh, slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(s sdk.SplitID) bool { return want[s] != reader }))
		}
	}
	for _, s := range c.unassigned {
		if _, ok := c.held[s]; ok {
			r.wrong("checkpoint %d has split %s with the enumerator and with a reader", c.id, s)
		}
	}
	for s := range c.ended {
		r.where[s] = spot{place: gone}
	}
}

// settled checks that nothing is on its way any more.
func (r *reference) settled() {
	if left := append(r.all(sent, -1), r.all(limbo, -1)...); len(left) > 0 {
		r.wrong("at rest %v are on their way", left)
	}
}
