package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// entry is one assignment command in the tracker.
type entry struct {
	protocol.Assignment
	state      telemetry.AssignmentState
	included   sdk.CheckpointID // the checkpoint that contains it, once state says so
	bytes      int64
	dispatched time.Time
}

// Tracker remembers assignments until a completed checkpoint contains them. At its bound it takes no more; it never drops
// an entry. It is a pure structure; the coordinator loop owns it.
type Tracker struct {
	maxSplits int
	maxBytes  int64
	byReader  map[sdk.ReaderID][]*entry // in order of sequence, adopted ones first
	applied   map[sdk.ReaderID]int      // how many entries of the list's front are known to be applied
	splits    int
	bytes     int64
	states    [telemetry.GCEligible + 1]int
}

// NewTracker returns an empty tracker for at most maxSplits splits and maxBytes bytes of them.
func NewTracker(maxSplits int, maxBytes int64) *Tracker {
	return &Tracker{maxSplits: maxSplits, maxBytes: maxBytes, byReader: map[sdk.ReaderID][]*entry{}, applied: map[sdk.ReaderID]int{}}
}

// Room reports whether splits fit.
func (t *Tracker) Room(splits []protocol.Split) bool {
	return t.splits+len(splits) <= t.maxSplits && t.bytes+size(splits) <= t.maxBytes
}

// Unadmitted reports that an assignment waits outside of its reader's mailbox.
func (t *Tracker) Unadmitted() bool { return t.states[telemetry.Dispatched] > 0 }

// Ripe reports that a checkpoint taken now would make room: something is with a reader that no checkpoint includes.
func (t *Tracker) Ripe() bool { return t.states[telemetry.Admitted]+t.states[telemetry.Applied] > 0 }

func size(splits []protocol.Split) int64 {
	var n int64
	for _, s := range splits {
		n += int64(len(s.ID) + len(s.Data.Data))
	}
	return n
}

// Dispatch records an assignment before its command is offered for the first time.
func (t *Tracker) Dispatch(a protocol.Assignment, now time.Time) { t.add(a, telemetry.Dispatched, now) }

// Adopt records splits that a registered reader turned out to hold beyond the restored checkpoint: applied, and not
// included. They have sequence 0, which every watermark of the epoch covers.
func (t *Tracker) Adopt(reader sdk.ReaderID, target protocol.Attempt, epoch protocol.Epoch, splits []protocol.Split, now time.Time) {
	if len(splits) > 0 {
		t.add(protocol.Assignment{Reader: reader, Target: target, Epoch: epoch, Splits: splits}, telemetry.Applied, now)
	}
}

func (t *Tracker) add(a protocol.Assignment, state telemetry.AssignmentState, now time.Time) {
	e := &entry{Assignment: a, state: state, bytes: size(a.Splits), dispatched: now}
	t.byReader[a.Reader] = append(t.byReader[a.Reader], e)
	t.splits += len(a.Splits)
	t.bytes += e.bytes
	t.states[state] += len(a.Splits)
}

func (t *Tracker) move(e *entry, state telemetry.AssignmentState) {
	t.states[e.state] -= len(e.Splits)
	t.states[state] += len(e.Splits)
	e.state = state
}

func (t *Tracker) forget(e *entry) {
	t.states[e.state] -= len(e.Splits)
	t.splits -= len(e.Splits)
	t.bytes -= e.bytes
}

// Admitted notes that the reader's mailbox accepted the command.
func (t *Tracker) Admitted(reader sdk.ReaderID, seq protocol.Sequence) {
	list := t.byReader[reader]
	i, found := slices.BinarySearchFunc(list, seq, func(e *entry, s protocol.Sequence) int { return cmp.Compare(e.Sequence, s) })
	if found && list[i].state == telemetry.Dispatched {
		t.move(list[i], telemetry.Admitted)
	}
}

// Applied notes a watermark of the reader. It is flow control, no proof of durability.
func (t *Tracker) Applied(reader sdk.ReaderID, target protocol.Attempt, mark protocol.Watermark) {
	list, leading := t.byReader[reader], true
	for i := t.applied[reader]; i < len(list); i++ {
		e := list[i]
		if e.state < telemetry.Applied && covered(e.Assignment, target, mark) {
			t.move(e, telemetry.Applied)
		}
		leading = leading && e.state >= telemetry.Applied
		if leading {
			t.applied[reader] = i + 1
		}
	}
}

func covered(a protocol.Assignment, target protocol.Attempt, mark protocol.Watermark) bool {
	return a.Target == target && a.Epoch == mark.Epoch && mailbox.Covers(mark, a.Sequence)
}

// Included notes what a reader's part of checkpoint id proves. An older checkpoint that contains an entry keeps it.
func (t *Tracker) Included(id sdk.CheckpointID, reader sdk.ReaderID, target protocol.Attempt, marks []protocol.Watermark) {
	for _, e := range t.byReader[reader] {
		if e.state == telemetry.CheckpointIncluded {
			continue
		}
		for _, m := range marks {
			if covered(e.Assignment, target, m) {
				t.move(e, telemetry.CheckpointIncluded)
				e.included = id
			}
		}
	}
}

// Aborted takes back what a checkpoint seemed to include: it proves nothing any more.
func (t *Tracker) Aborted(id sdk.CheckpointID) {
	for _, list := range t.byReader {
		for _, e := range list {
			if e.state == telemetry.CheckpointIncluded && e.included == id {
				t.move(e, telemetry.Applied)
				e.included = 0
			}
		}
	}
}

// Complete drops what checkpoint id or an older one includes, and returns how many entries that were.
func (t *Tracker) Complete(id sdk.CheckpointID) int {
	dropped := 0
	for reader := range t.byReader {
		dropped += t.compact(reader, func(e *entry) bool {
			return e.state == telemetry.CheckpointIncluded && e.included <= id
		})
	}
	return dropped
}

// compact removes the entries of a reader that drop selects.
func (t *Tracker) compact(reader sdk.ReaderID, drop func(*entry) bool) int {
	before := len(t.byReader[reader])
	delete(t.applied, reader)
	kept := slices.DeleteFunc(t.byReader[reader], func(e *entry) bool {
		if !drop(e) {
			return false
		}
		t.forget(e)
		return true
	})
	if len(kept) == 0 {
		delete(t.byReader, reader)
	} else {
		t.byReader[reader] = kept
	}
	return before - len(kept)
}

// Reset is for a new attempt of a reader. It forgets the reader's entries and returns the splits that the attempt does not
// hold: those above the watermark of the checkpoint that it was restored from.
func (t *Tracker) Reset(reader sdk.ReaderID, holds func(sdk.SplitID) bool) []protocol.Split {
	var back []protocol.Split
	t.compact(reader, func(e *entry) bool {
		for _, s := range e.Splits {
			if !holds(s.ID) {
				back = append(back, s)
			}
		}
		return true
	})
	return back
}

// Snapshot returns every entry, for the coordinator's part of a checkpoint. A restore tells by the readers' watermarks in
// the same cut which of them the readers have.
func (t *Tracker) Snapshot() []protocol.Assignment {
	var out []protocol.Assignment
	for _, list := range t.byReader {
		for _, e := range list {
			out = append(out, e.Assignment)
		}
	}
	slices.SortFunc(out, func(a, b protocol.Assignment) int {
		if a.Reader != b.Reader {
			return int(a.Reader - b.Reader)
		}
		return int(a.Sequence) - int(b.Sequence)
	})
	return out
}

// measure fills the tracker's metrics.
func (t *Tracker) measure(stats *telemetry.Coordinator) {
	stats.TrackerEntries.Set(int64(t.splits))
	stats.TrackerBytes.Set(t.bytes)
	for i := range t.states {
		stats.Assignments[i].Set(int64(t.states[i]))
	}
	var oldest time.Time
	for _, list := range t.byReader {
		if at := list[0].dispatched; oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	stats.OldestUncheckpointed.Set(oldest)
}
