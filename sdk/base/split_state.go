package base

import "github.com/penstock-dev/penstock/sdk"

// splitState is a split on the loop: its emitted state, and what was fetched of it and not emitted yet. It is the only
// place a position advances.
type splitState[E any, S sdk.Split, St any] struct {
	id    sdk.SplitID
	state St
	feed  *feed[E, S, St]
	since uint64 // batches fetched before this change belong to an earlier life of the id
	slot  int    // index in Reader.list

	pieces []piece[E] // in order; of pieces[0] the first done elements are emitted
	done   int

	queued    bool // in feed.turns
	paused    bool // as the engine wants it
	told      bool // what the fetcher was told of paused
	finishing bool // the fetcher finished it; it ends with its last piece
	gone      bool // removed or finished
}

// piece is a chunk without its split.
type piece[E any] struct {
	elements []E
	lease    *lease // nil when there is nothing to release
}

// lease counts the users of a batch on the loop.
type lease struct {
	release func()
	users   int
}

func (l *lease) drop() {
	if l == nil {
		return
	}
	if l.users--; l.users == 0 {
		l.release()
	}
}

// push appends a chunk.
func (s *splitState[E, S, St]) push(elements []E, l *lease) {
	if l != nil {
		l.users++
	}
	s.pieces = append(s.pieces, piece[E]{elements, l})
}

// pop drops the first piece.
func (s *splitState[E, S, St]) pop() {
	first := s.pieces[0]
	last := copy(s.pieces, s.pieces[1:]) // more than one only while paused or when a fetch has many chunks of one split
	s.pieces[last] = piece[E]{}
	s.pieces, s.done = s.pieces[:last], 0
	first.lease.drop()
}

// discard drops everything that was not emitted.
func (s *splitState[E, S, St]) discard() {
	for len(s.pieces) > 0 {
		s.pop()
	}
}

// feed is a fetcher as the loop sees it, with the splits of it that have something to emit, in the order of their turns.
type feed[E any, S sdk.Split, St any] struct {
	*fetcher[E, S]
	turns []*splitState[E, S, St]
	head  int
}

// enqueue gives s a turn, at the end.
func (f *feed[E, S, St]) enqueue(s *splitState[E, S, St]) {
	if s.queued {
		return
	}
	s.queued = true
	if f.head > 0 && f.head*2 >= len(f.turns) {
		n := copy(f.turns, f.turns[f.head:])
		clear(f.turns[n:])
		f.turns, f.head = f.turns[:n], 0
	}
	f.turns = append(f.turns, s)
}

// dequeue takes the split whose turn it is, or nil. Those that were paused or ended meanwhile lose theirs.
func (f *feed[E, S, St]) dequeue() *splitState[E, S, St] {
	for f.head < len(f.turns) {
		s := f.turns[f.head]
		f.turns[f.head] = nil
		f.head++
		s.queued = false
		if !s.paused && !s.gone && len(s.pieces) > 0 {
			return s
		}
	}
	return nil
}

// hasWork reports that a poll would find something here, or find out that there is nothing.
func (f *feed[E, S, St]) hasWork() bool {
	return f.head < len(f.turns) || f.failed.Load() || !f.queue.empty()
}
