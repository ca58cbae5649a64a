package base

import (
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// maxStalledTurns is how many turns in a row EmitChunk may consume nothing although the budget was fresh. A few are
// explained by deadlines and wakeups, a hundred only by a defect that would spin for ever.
const maxStalledTurns = 100

// Poll implements [sdk.Reader]. A turn serves one split after the other until a budget is used up; the next turn goes on
// with the next fetcher and, within it, the next split, so neither a huge chunk nor a busy fetcher starves others. What
// one split has fetched is emitted in order.
//
// An error of a fetcher is returned after everything it had handed over before was emitted, and always before the end of
// input.
func (r *Reader[E, S, St]) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	if r.closed {
		return sdk.NothingAvailable, fmt.Errorf("poll: %w", sdk.ErrClosed)
	}
	if r.out.refused {
		return sdk.NothingAvailable, nil // fenced: whatever is left is not ours to emit
	}
	r.out.to, r.out.emitted = out, 0
	r.quota = noQuota
	if r.limit.limits() {
		r.quota = r.limit.available(time.Now())
	}
	err := r.serve(turn)
	r.out.to = nil
	r.woken.Store(false)
	r.turn++ // another feed begins the next turn
	if err != nil {
		return sdk.NothingAvailable, err
	}
	return r.status()
}

// serve emits until the turn has to end or nothing is left.
func (r *Reader[E, S, St]) serve(turn *sdk.Turn) error {
	for !r.mustYield(turn) {
		s, err := r.next()
		if s == nil || err != nil {
			return err
		}
		if over, err := r.emit(turn, s); over || err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader[E, S, St]) mustYield(turn *sdk.Turn) bool {
	return turn.ShouldYield() || r.woken.Load() || r.out.emitted >= r.quota
}

// next answers a split with something to emit, or nil.
func (r *Reader[E, S, St]) next() (*splitState[E, S, St], error) {
	for range r.feeds {
		s, err := r.nextOf(r.feeds[r.turn%len(r.feeds)])
		if s != nil || err != nil {
			return s, err
		}
		r.turn++
	}
	return nil, nil
}

// nextOf spreads at most as many batches as the hand-over holds, so that batches without an element to emit (all of them
// paused or removed) cannot prolong a turn.
func (r *Reader[E, S, St]) nextOf(f *feed[E, S, St]) (*splitState[E, S, St], error) {
	for range r.cfg.QueueFetches + 1 {
		if s := f.dequeue(); s != nil {
			return s, nil
		}
		// In this order: a fetcher hands over its last batch before it fails.
		failed := f.failed.Load()
		b, ok := f.queue.take()
		switch {
		case ok:
			r.spread(f, b)
		case failed:
			return nil, f.err
		default:
			return nil, nil
		}
	}
	return f.dequeue(), nil
}

// spread gives each split of a batch its part.
func (r *Reader[E, S, St]) spread(f *feed[E, S, St], b batch[E]) {
	var l *lease
	if b.Release != nil {
		l = &lease{release: b.Release, users: 1}
	}
	for i := range b.Chunks {
		c := &b.Chunks[i]
		s := r.receiver(f, c.Split, b.applied)
		if s == nil || len(c.Elements) == 0 {
			continue
		}
		s.push(c.Elements, l)
		if !s.paused {
			f.enqueue(s)
		}
	}
	for _, id := range b.Finished {
		if s := r.receiver(f, id, b.applied); s != nil {
			s.finishing = true
			r.settle(s)
		}
	}
	l.drop()
}

// receiver answers the split that data belongs to; nil when it was removed, also when it was added again since.
func (r *Reader[E, S, St]) receiver(f *feed[E, S, St], id sdk.SplitID, applied uint64) *splitState[E, S, St] {
	s := r.splits[id]
	if s == nil || s.feed != f || applied < s.since {
		return nil
	}
	return s
}

// settle does what had to wait until everything fetched of s was emitted.
func (r *Reader[E, S, St]) settle(s *splitState[E, S, St]) {
	if len(s.pieces) > 0 || s.gone {
		return
	}
	if !s.finishing {
		r.tellPause(s)
		return
	}
	final := r.cfg.ToSplit(&s.state)
	r.drop(s)
	r.out.FinishSplit(final)
	if r.cfg.OnCheckpoint != nil {
		r.commits.finish(final)
	}
}

// emit serves s until nothing of it is left or the turn is over. That has to be remembered, not asked again: a turn looks at
// the clock once in several questions, so the answer to the next one may be that there is time.
func (r *Reader[E, S, St]) emit(turn *sdk.Turn, s *splitState[E, S, St]) (over bool, err error) {
	r.out.split = s.id
	for len(s.pieces) > 0 {
		elements := s.pieces[0].elements[s.done:]
		var n int
		if r.cfg.Emit != nil {
			n, err = r.emitEach(turn, s, elements)
		} else {
			n, err = r.emitChunks(turn, s, elements)
		}
		s.done += n
		if err != nil {
			return true, fmt.Errorf("split %q: emit: %w", s.id, err)
		}
		if n < len(elements) {
			s.feed.enqueue(s) // behind the others
			return true, nil
		}
		s.pop()
	}
	r.settle(s)
	return r.out.refused, nil
}

func (r *Reader[E, S, St]) emitEach(turn *sdk.Turn, s *splitState[E, S, St], elements []E) (int, error) {
	for i := range elements {
		if r.mustYield(turn) {
			return i, nil
		}
		if err := r.cfg.Emit(elements[i], &s.state, &r.out); err != nil {
			return i, err
		}
		if r.out.refused {
			return i + 1, nil
		}
	}
	return len(elements), nil
}

func (r *Reader[E, S, St]) emitChunks(turn *sdk.Turn, s *splitState[E, S, St], elements []E) (int, error) {
	consumed := 0
	for consumed < len(elements) && !r.mustYield(turn) {
		rest := elements[consumed:]
		if left := r.quota - r.out.emitted; left < len(rest) {
			rest = rest[:left]
		}
		n, err := r.cfg.EmitChunk(rest, &s.state, &r.out)
		if n < 0 || n > len(rest) {
			return consumed, fmt.Errorf("EmitChunk answered that it consumed %d of %d elements", n, len(rest))
		}
		consumed += n
		if err != nil || r.out.refused {
			return consumed, err
		}
		if n == 0 {
			if r.stalled++; r.stalled == maxStalledTurns {
				return consumed, fmt.Errorf("EmitChunk consumed nothing of %d elements in %d turns: it must take at least one "+
					"when the turn has budget left, whatever its size", len(rest), r.stalled)
			}
			return consumed, nil
		}
		r.stalled = 0
	}
	return consumed, nil
}

// status says what the next poll would find.
func (r *Reader[E, S, St]) status() (sdk.PollStatus, error) {
	if r.out.refused {
		return sdk.NothingAvailable, nil
	}
	limited := false
	if r.limit.limits() {
		r.limit.spend(r.out.emitted)
		limited = r.limit.tokens < 1
	}
	switch {
	case r.hasWork() && limited:
		r.ringAfter(r.limit.pause())
		return sdk.NothingAvailable, nil
	case r.hasWork():
		return sdk.MoreAvailable, nil
	case r.ended():
		return sdk.EndOfInput, nil
	default:
		return sdk.NothingAvailable, nil
	}
}

func (r *Reader[E, S, St]) hasWork() bool {
	for _, f := range r.feeds {
		if f.hasWork() {
			return true
		}
	}
	return false
}

// ended decides the end of input: nothing will be added, nothing is left, and no fetcher can still fail. Idleness is asked
// first: an idle fetcher has handed over everything and does nothing more, so what is seen empty after it stays empty.
func (r *Reader[E, S, St]) ended() bool {
	if !r.noMore || len(r.list) > 0 {
		return false
	}
	for _, f := range r.feeds {
		if !f.isIdle() {
			return false
		}
	}
	return !r.hasWork()
}

// ringAfter makes the engine poll again when the rate limit allows it.
func (r *Reader[E, S, St]) ringAfter(pause time.Duration) {
	if r.timer == nil {
		r.timer = time.AfterFunc(pause, r.notify)
		return
	}
	r.timer.Reset(pause)
}
