package base

import (
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// Rota holds the splits of a [SplitReader] that asks for one after the other, each at the position up to which it was fetched. Embedded, it is
// HandleSplits and Close, so that only Fetch is left to write:
//
//	type fetcher struct {
//		base.Rota[Split]
//		client *Client
//	}
//
//	func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[Item], error) {
//		at := f.Next()
//		items, err := f.client.Read(ctx, at.Part, at.Next) // may wait
//		if err != nil || len(items) == 0 {
//			return base.Fetched[Item]{}, err
//		}
//		at.Next += int64(len(items))
//		return base.Fetched[Item]{Chunks: []base.Chunk[Item]{{Split: at.SplitID(), Elements: items}}}, nil
//	}
//
// S is a struct: of a pointer the position would be that of the reader loop, which belongs to another goroutine. The zero value is ready to use.
// A Rota belongs to the fetcher's goroutine.
type Rota[S sdk.Split] struct {
	byID map[sdk.SplitID]*rotaEntry[S]
	list []*rotaEntry[S]
	at   int // whose turn it is
}

type rotaEntry[S sdk.Split] struct {
	id     sdk.SplitID
	split  S
	paused bool
}

// HandleSplits implements [SplitReader].
func (r *Rota[S]) HandleSplits(c Change[S]) error {
	for _, id := range c.Removed {
		r.Finish(id)
	}
	if r.byID == nil {
		r.byID = make(map[sdk.SplitID]*rotaEntry[S], len(c.Added))
	}
	for _, split := range c.Added {
		e := &rotaEntry[S]{id: split.SplitID(), split: split}
		r.byID[e.id] = e
		r.list = append(r.list, e)
	}
	for _, id := range c.Paused {
		r.byID[id].paused = true
	}
	for _, id := range c.Resumed {
		r.byID[id].paused = false
	}
	return nil
}

// Next answers the split whose turn it is, among those that are not paused; the one after it comes next. The position in it is the caller's to
// move, its id is not. There is one whenever Fetch is called; else the answer is nil.
func (r *Rota[S]) Next() *S {
	for range r.list {
		e := r.list[r.at%len(r.list)]
		r.at = (r.at + 1) % len(r.list)
		if !e.paused {
			return &e.split
		}
	}
	return nil
}

// Active is how many splits are not paused.
func (r *Rota[S]) Active() (n int) {
	for _, e := range r.list {
		if !e.paused {
			n++
		}
	}
	return n
}

// Finish takes out a split that Fetch names in [Fetched.Finished].
func (r *Rota[S]) Finish(id sdk.SplitID) {
	delete(r.byID, id)
	for i, e := range r.list {
		if e.id == id {
			r.list = slices.Delete(r.list, i, i+1)
			if i < r.at {
				r.at-- // nobody loses a turn
			}
			return
		}
	}
}

// Close implements [SplitReader]: there is nothing to close. A split reader that has a connection writes a Close of its own.
func (r *Rota[S]) Close() error { return nil }
