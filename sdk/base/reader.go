package base

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Reader is the managed base reader: embed it and give [NewReader] a [Config]. It is an [sdk.Reader] with the abilities
// [sdk.NoMoreSplitsHandler], [sdk.Pauser] and [sdk.CheckpointListener].
//
// The methods belong to the reader loop, as the sdk says, except for Wakeup, which any goroutine may call. E is a fetched
// element, S the split, St the state of a split on the loop; see [Config].
type Reader[E any, S sdk.Split, St any] struct {
	cfg    Config[E, S, St]
	notify func()
	log    *slog.Logger
	meters meters

	// The loop's own.
	splits  map[sdk.SplitID]*splitState[E, S, St]
	list    []*splitState[E, S, St] // the same, in a stable order
	feeds   []*feed[E, S, St]
	byIndex map[int]*feed[E, S, St]
	turn    int // the feed whose turn it is
	out     output
	quota   int // records this turn may emit
	limit   bucket
	timer   *time.Timer // rings when the limit allows more; nil until needed
	stalled int         // turns in which EmitChunk consumed nothing
	commits pendingCommits[S]
	noMore  bool
	closed  bool

	woken atomic.Bool

	// wake is what Wakeup reaches from other goroutines.
	wake struct {
		sync.Mutex
		feeds []*feed[E, S, St]
	}
}

// The base reader has these abilities whatever its type arguments are.
var (
	_ sdk.Reader[sdk.Split]   = (*Reader[any, sdk.Split, any])(nil)
	_ sdk.NoMoreSplitsHandler = (*Reader[any, sdk.Split, any])(nil)
	_ sdk.Pauser              = (*Reader[any, sdk.Split, any])(nil)
	_ sdk.CheckpointListener  = (*Reader[any, sdk.Split, any])(nil)
)

// NewReader makes a reader. It starts nothing and reports a configuration that cannot work.
func NewReader[E any, S sdk.Split, St any](ctx sdk.ReaderContext, cfg Config[E, S, St]) (*Reader[E, S, St], error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("base.NewReader: %w", err)
	}
	r := &Reader[E, S, St]{
		cfg:     cfg.withDefaults(),
		notify:  ctx.NotifyAvailable,
		log:     ctx.Logger(),
		meters:  newMeters(ctx.Metrics()),
		splits:  make(map[sdk.SplitID]*splitState[E, S, St]),
		byIndex: make(map[int]*feed[E, S, St]),
	}
	if cfg.RecordsPerSecond > 0 {
		r.limit = newBucket(cfg.RecordsPerSecond)
	}
	return r, nil
}

// Open implements [sdk.Reader]. It has nothing to do: fetchers start with their first split. Embed the reader and write an
// Open of your own for what has to be checked early.
func (r *Reader[E, S, St]) Open(context.Context) error { return nil }

// AddSplits implements [sdk.Reader]. It starts the fetchers that the splits need.
func (r *Reader[E, S, St]) AddSplits(splits []S) error {
	if r.closed {
		return fmt.Errorf("add splits: %w", sdk.ErrClosed)
	}
	added := make(map[*feed[E, S, St]][]*splitState[E, S, St])
	var order []*feed[E, S, St]
	for _, split := range splits {
		s, err := r.add(split)
		if err != nil {
			return fmt.Errorf("add splits: %w", err)
		}
		if s == nil {
			continue
		}
		if added[s.feed] == nil {
			order = append(order, s.feed)
		}
		added[s.feed] = append(added[s.feed], s)
	}
	for _, f := range order { // one change for each fetcher, so that its fetch is interrupted once
		since := f.post(func(c *changes[S]) {
			for _, s := range added[f] {
				c.add(r.cfg.ToSplit(&s.state))
			}
		})
		for _, s := range added[f] {
			s.since = since
		}
	}
	return nil
}

// add answers nil for a split that is known.
func (r *Reader[E, S, St]) add(split S) (*splitState[E, S, St], error) {
	id := split.SplitID()
	if err := checkSplitID(id); err != nil {
		return nil, err
	}
	if r.splits[id] != nil {
		return nil, nil
	}
	index := 0
	if r.cfg.FetcherOf != nil {
		index = r.cfg.FetcherOf(split)
	}
	if index < 0 || index >= r.cfg.MaxFetchers {
		return nil, fmt.Errorf("split %q: FetcherOf answered %d, it must be 0 to %d (MaxFetchers-1)", id, index, r.cfg.MaxFetchers-1)
	}
	s := &splitState[E, S, St]{id: id, state: r.cfg.ToState(split), feed: r.feed(index), slot: len(r.list)}
	r.splits[id] = s
	r.list = append(r.list, s)
	return s, nil
}

// feed answers the fetcher with that index, started if need be.
func (r *Reader[E, S, St]) feed(index int) *feed[E, S, St] {
	if f := r.byIndex[index]; f != nil {
		return f
	}
	f := &feed[E, S, St]{fetcher: &fetcher[E, S]{
		index: index, maxLate: r.cfg.QueueFetches, create: r.cfg.Fetcher, notify: r.notify, log: r.log, meters: r.meters,
		queue:    newHandover[batch[E]](r.cfg.QueueFetches, r.cfg.QueueBytes),
		bell:     make(chan struct{}, 1),
		stopping: make(chan struct{}),
		released: make(chan struct{}),
		quiet:    make(chan struct{}),
		done:     make(chan struct{}),
	}}
	r.byIndex[index] = f
	r.feeds = append(r.feeds, f)
	r.wake.Lock()
	r.wake.feeds = append(r.wake.feeds, f)
	r.wake.Unlock()
	f.start()
	return f
}

// RemoveSplits gives splits up without finishing them, for example when their part of the system was deleted: their state
// is dropped, and what was fetched of them and not emitted is dropped too. Unknown ids are ignored. Reader loop only.
func (r *Reader[E, S, St]) RemoveSplits(ids []sdk.SplitID) error {
	for _, id := range ids {
		s := r.splits[id]
		if s == nil {
			continue
		}
		s.discard()
		r.drop(s)
		s.feed.post(func(c *changes[S]) { c.remove(id) })
	}
	r.notify() // the last split may be gone, which ends the input
	return nil
}

// drop takes s out of the books.
func (r *Reader[E, S, St]) drop(s *splitState[E, S, St]) {
	s.gone = true
	last := len(r.list) - 1
	r.list[s.slot] = r.list[last]
	r.list[s.slot].slot = s.slot
	r.list[last] = nil
	r.list = r.list[:last]
	delete(r.splits, s.id)
}

// PauseOrResume implements [sdk.Pauser]. A paused split emits nothing more, also of what is already fetched: that waits, in
// order, and does not hold up other splits. It is at most twice what the hand-over holds: what is in it, and what the split
// reader still brings of what its client had. The split is fetched again only when all of it has been emitted after a resume.
func (r *Reader[E, S, St]) PauseOrResume(toPause, toResume []sdk.SplitID) error {
	for _, id := range toPause {
		if s := r.splits[id]; s != nil && !s.paused {
			s.paused = true
			r.tellPause(s)
		}
	}
	for _, id := range toResume {
		if s := r.splits[id]; s != nil && s.paused {
			s.paused = false
			if len(s.pieces) > 0 {
				s.feed.enqueue(s)
			}
			r.tellPause(s)
		}
	}
	r.notify()
	return nil
}

// tellPause brings what the fetcher knows in line with what is wanted.
func (r *Reader[E, S, St]) tellPause(s *splitState[E, S, St]) {
	switch {
	case s.paused && !s.told:
		s.told = true
		s.feed.post(func(c *changes[S]) { c.setPause(s.id, pause) })
	case !s.paused && s.told && len(s.pieces) == 0:
		s.told = false
		s.feed.post(func(c *changes[S]) { c.setPause(s.id, resume) })
	}
}

// NoMoreSplits implements [sdk.NoMoreSplitsHandler].
func (r *Reader[E, S, St]) NoMoreSplits() error {
	r.noMore = true
	r.notify()
	return nil
}

// Snapshot implements [sdk.Reader].
func (r *Reader[E, S, St]) Snapshot(id sdk.CheckpointID) ([]S, error) {
	splits := make([]S, len(r.list))
	for i, s := range r.list {
		splits[i] = r.cfg.ToSplit(&s.state)
	}
	if r.cfg.OnCheckpoint != nil {
		r.commits.snapshot(id, splits)
	}
	return splits, nil
}

// CheckpointComplete implements [sdk.CheckpointListener].
func (r *Reader[E, S, St]) CheckpointComplete(id sdk.CheckpointID) error {
	if r.cfg.OnCheckpoint == nil {
		return nil
	}
	covered, splits, ok := r.commits.complete(id)
	if !ok {
		return nil
	}
	return r.cfg.OnCheckpoint(covered, splits)
}

// CheckpointAborted implements [sdk.CheckpointListener].
func (r *Reader[E, S, St]) CheckpointAborted(id sdk.CheckpointID) error {
	r.commits.abort(id)
	return nil
}

// Wakeup implements [sdk.Reader]: a running Poll ends before its next element, running fetches are cancelled with
// [sdk.ErrWakeup], and nothing is lost. A wakeup between polls costs the next one an early, empty return.
func (r *Reader[E, S, St]) Wakeup() {
	r.woken.Store(true)
	r.wake.Lock()
	feeds := r.wake.feeds // only ever appended to
	r.wake.Unlock()
	for _, f := range feeds {
		f.interrupt(sdk.ErrWakeup)
	}
}

// noQuota is the quota of a turn without a rate limit.
const noQuota = math.MaxInt
