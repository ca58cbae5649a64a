package base

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// known is what can be said of a reader from outside, by what was done to it and what it did. The rules compare the reader
// with it; none of them asks the reader.
type known struct {
	lines   [len(names)]line
	brought []*brought

	noMore  bool
	woken   bool // a wakeup since the last turn ended: the turn, or the next one, emits nothing more
	awake   bool // the engine polls again without being rung for
	told    bool // the end of input was told, and nothing was added since
	created bool // the split reader was made

	failing  bool // a fetch has failed
	reported bool // and a poll has said so

	closing, closed, gaveUp bool

	turn struct { // the running one
		emitted int
		waiting int  // handed over when it began
		failed  bool // when it began, the loop had to find out that the fetch has failed
	}
}

// line is a split.
type line struct {
	added, ended     bool
	fetched, emitted int64
}

// brought is a batch of elements from to to-1.
type brought struct {
	split    int
	from, to int64
	released int
}

// brings notes that a fetch returns b.
func (w *world) brings(b *brought) {
	w.known.brought = append(w.known.brought, b)
	w.known.lines[b.split].fetched = b.to
}

// inHand reports that the fetcher still holds its newest batch: it is about to offer it, or waits for room.
func (w *world) inHand() bool {
	return w.fetcher.at == fetched || w.fetcher.at == nowhere && w.fetcher.last == fetched
}

// waiting is how many elements were handed over and not emitted.
func (w *world) waiting() int {
	handed := w.known.brought
	if w.inHand() {
		handed = handed[:len(handed)-1]
	}
	n := int64(0)
	for _, b := range handed {
		n += max(0, b.to-max(b.from, w.known.lines[b.split].emitted))
	}
	return int(n)
}

// hasFailed reports that the fetcher has failed, and has rung for it: the loop must find out.
func (w *world) hasFailed() bool {
	return w.known.failing && !w.inHand() && w.fetcher.at != ringing && w.fetcher.at != rung // it may be for the data before
}

// over reports that no record can follow.
func (w *world) over() bool {
	for i := range w.known.lines {
		if l := &w.known.lines[i]; l.added && !l.ended {
			return false
		}
	}
	return w.known.noMore && !w.known.failing
}

// emits is told of each record: the next one of its split, of those that were handed over, in a turn that may emit.
func (w *world) emits(rec sdk.Record) {
	k := &w.known
	l := &k.lines[indexOf(rec.Split)]
	switch k.turn.emitted++; {
	case k.closing:
		w.violate("split %s emits %d after Close was called", rec.Split, rec.Offset)
	case k.woken:
		w.violate("split %s emits %d in a turn that was woken before", rec.Split, rec.Offset)
	case rec.Offset != l.emitted || rec.Offset >= l.fetched || l.ended:
		w.violate("split %s emits %d, want %d of %d (it had ended: %t)", rec.Split, rec.Offset, l.emitted, l.fetched, l.ended)
	case k.turn.emitted > budget:
		w.violate("a turn of %d records emits %d", budget, k.turn.emitted)
	}
	l.emitted++
}

// finishes is told of the end of a split: once, after its last record, at the position behind it.
func (w *world) finishes(final at) {
	i := indexOf(final.SplitID())
	if l := &w.known.lines[i]; l.ended || l.emitted != end(i) || final.Next != end(i) {
		w.violate("split %s ends at %d, after %d of %d records (it had ended: %t)", final.Name, final.Next, l.emitted, end(i), l.ended)
	}
	w.known.lines[i].ended = true
}

// releases is told that the reader needs b no more: once, on the loop, after its last element was emitted or dropped.
func (w *world) releases(b *brought) {
	b.released++
	k := &w.known
	switch emitted := k.lines[b.split].emitted; {
	case b.released > 1:
		w.violate("the batch of %s from %d is released %d times", names[b.split], b.from, b.released)
	case w.doing() == numActs && !k.gaveUp:
		w.violate("the batch of %s from %d is released, but not by the loop", names[b.split], b.from)
	case emitted < b.to && !k.closing:
		w.violate("the batch of %s from %d to %d is released after %d were emitted", names[b.split], b.from, b.to-1, emitted)
	}
}

// shuts is told that the split reader is being closed: once, and after everything that it brought was released.
func (w *world) shuts() {
	if !w.known.closing || w.script.closes > 1 {
		w.violate("the split reader is closed %d times (Close was called: %t)", w.script.closes, w.known.closing)
	}
	for _, b := range w.known.brought {
		if b.released == 0 {
			w.violate("the split reader is closed while its batch of %s from %d is in use", names[b.split], b.from)
		}
	}
}

// poll is a turn.
func (w *world) poll() {
	k := &w.known
	w.turn.Restart()
	k.turn.emitted, k.turn.waiting, k.turn.failed = 0, w.waiting(), w.hasFailed()
	status, err := w.r.Poll(w.turn, w)
	woken := k.woken
	if !k.closed {
		k.woken = false
	}
	switch {
	case k.closed:
		if !errors.Is(err, sdk.ErrClosed) {
			w.violate("poll after close: %s, %v, want ErrClosed", status, err)
		}
	case err != nil:
		if !errors.Is(err, errBroken) || !k.failing || w.waiting() > 0 {
			w.violate("poll: %v (a fetch has failed: %t; %d records are handed over and not emitted)", err, k.failing, w.waiting())
		}
		k.reported, k.awake = true, false
	default:
		if !woken && k.turn.emitted < min(k.turn.waiting, budget) {
			w.violate("a turn emits %d records of %d that were handed over before", k.turn.emitted, k.turn.waiting)
		}
		if !woken && k.turn.failed && k.turn.waiting == 0 {
			w.violate("poll: %s although the fetch has failed", status)
		}
		w.polled(status)
	}
}

// polled looks at the answer of a turn without an error.
func (w *world) polled(status sdk.PollStatus) {
	k := &w.known
	k.awake = status == sdk.MoreAvailable
	switch status {
	case sdk.MoreAvailable:
		if w.waiting() == 0 && !k.failing {
			w.violate("poll: MoreAvailable, but nothing is: the engine would spin")
		}
	case sdk.EndOfInput:
		if !w.over() {
			w.violate("poll: EndOfInput (no more splits: %t, a fetch has failed: %t, splits %+v)", k.noMore, k.failing, k.lines)
		}
		k.told = true
	case sdk.NothingAvailable: // checkAvailability sees to it that a ring follows when there is something
	}
}

// add adds the next split, and again every one that has not ended.
func (w *world) add() {
	var splits []at
	fresh := -1
	for i := range w.known.lines {
		l := &w.known.lines[i]
		if l.added && !l.ended || !l.added && fresh < 0 {
			splits = append(splits, at{string(names[i]), 0})
		}
		if !l.added && fresh < 0 {
			fresh = i
		}
	}
	w.r.notify = w.ring // for the fetcher, if one starts: it is held before it rings, the loop is not
	err := w.r.AddSplits(splits)
	w.r.notify = w.NotifyAvailable
	switch {
	case w.known.closed:
		if !errors.Is(err, sdk.ErrClosed) {
			w.violate("add after close: %v, want ErrClosed", err)
		}
	case err != nil:
		w.violate("add: %v", err)
	case fresh >= 0:
		w.known.lines[fresh].added, w.known.told = true, false
	}
}

func (w *world) noMore() {
	if err := w.r.NoMoreSplits(); err != nil {
		w.violate("no more splits: %v", err)
	}
}

func (w *world) close() {
	err := w.r.Close()
	switch late := time.Since(w.began) >= DefaultCloseTimeout; {
	case late && !w.known.closed:
		if !errors.Is(err, sdk.ErrClosed) {
			w.violate("close gave up: %v, want ErrClosed", err)
		}
	case err != nil:
		w.violate("close: %v", err)
	}
	w.known.closed = true
}

// check looks at every rule that holds whenever all threads are held or wait. a is what was done last.
func (w *world) check(a act) {
	w.checkThreads()
	w.checkFetch(a)
	w.checkReleased()
	if w.doing() == numActs && !w.known.closing {
		w.checkAvailability()
		w.checkSnapshot()
	}
}

// checkThreads: nobody waits inside the reader except for what is yet to come.
func (w *world) checkThreads() {
	if w.doing() != numActs && w.looper.at == nowhere {
		switch {
		case w.doing() != doClose:
			w.violate("the loop waits inside the reader")
		case w.fetcher.at == nowhere:
			w.violate("close waits for a fetcher that waits as well")
		}
	}
	if w.r.feeds == nil || w.known.closing {
		return
	}
	held := w.r.feeds[0].queue.count.Load()
	switch {
	case held > 1:
		w.violate("a hand-over of one batch holds %d", held)
	case w.fetcher.at != nowhere:
	case w.inHand():
		if held == 0 {
			w.violate("the fetcher waits for room in a hand-over that is empty")
		}
	case w.known.failing: // it has ended
	case w.unread() > 0:
		w.violate("the fetcher rests, although %d splits are to be read", w.unread())
	}
}

// unread is how many splits a fetcher has to know of.
func (w *world) unread() int {
	n := 0
	for i := range w.known.lines {
		if l := &w.known.lines[i]; l.added && l.fetched < end(i) {
			n++
		}
	}
	return n
}

// checkFetch: a fetch that goes on was told of every split, and a wakeup or a close has reached the one that was running.
func (w *world) checkFetch(a act) {
	if w.fetcher.at != fetching {
		return
	}
	if w.script.ctx.Err() == nil {
		if n := w.unread(); len(w.script.assigned) != n {
			w.violate("a fetch goes on with %d splits of %d", len(w.script.assigned), n)
		}
		if a == doWakeup || w.known.closing {
			w.violate("a fetch goes on after %s", a)
		}
		return
	}
	cause := context.Cause(w.script.ctx)
	if !errors.Is(cause, sdk.ErrWakeup) && (!w.known.closing || !errors.Is(cause, sdk.ErrClosed)) {
		w.violate("a fetch was cancelled with %v", cause)
	}
}

// checkReleased: what was emitted is released, and so is everything once the reader is closed. Read to its end, a split ends.
func (w *world) checkReleased() {
	k := &w.known
	if w.doing() != numActs {
		return
	}
	for i := range k.lines {
		if l := &k.lines[i]; !k.closing && l.added && !l.ended && l.emitted == end(i) {
			w.violate("split %s was read to its end and has not ended", names[i])
		}
	}
	for _, b := range k.brought {
		emitted := k.lines[b.split].emitted >= b.to
		if b.released == 0 && (emitted && !k.closing || k.closed && !k.gaveUp) {
			w.violate("the batch of %s from %d is not released", names[b.split], b.from)
		}
	}
}

// checkAvailability: when the engine waits to be rung for, there is nothing to poll for, unless a fetcher is about to ring.
func (w *world) checkAvailability() {
	k := &w.known
	if k.awake || len(w.doorbell) > 0 || w.fetcher.at == ringing {
		return
	}
	switch {
	case w.waiting() > 0:
		w.violate("nobody rang for %d records that are handed over", w.waiting())
	case w.hasFailed() && !k.reported:
		w.violate("nobody rang for the failure of a fetch")
	case w.over() && !k.told && w.fetcher.at == nowhere:
		w.violate("nobody rang for the end of the input")
	}
}

// checkSnapshot: a snapshot has every split that has not ended, where its emitted records end.
func (w *world) checkSnapshot() {
	splits, err := w.r.Snapshot(1)
	if err != nil {
		w.violate("snapshot: %v", err)
	}
	want := 0
	for i := range w.known.lines {
		if l := &w.known.lines[i]; l.added && !l.ended {
			want++
		}
	}
	if len(splits) != want {
		w.violate("a snapshot has %v, want %d splits", splits, want)
	}
	for _, s := range splits {
		l := &w.known.lines[indexOf(s.SplitID())]
		if !l.added || l.ended || s.Next != l.emitted {
			w.violate("a snapshot has %v, emitted up to %d (added: %t, ended: %t)", s, l.emitted, l.added, l.ended)
		}
	}
}

// checkRemains: the reader is closed and its fetcher gone; nothing is left of either, and it took no time.
func (w *world) checkRemains() {
	k := &w.known
	if took := time.Since(w.began); took > 0 && !k.gaveUp {
		w.violate("something waited for %s", took)
	}
	for _, b := range k.brought {
		if b.released != 1 {
			w.violate("the batch of %s from %d was released %d times", names[b.split], b.from, b.released)
		}
	}
	if k.created != (w.script.closes == 1) {
		w.violate("the split reader was made: %t, and closed %d times", k.created, w.script.closes)
	}
}
