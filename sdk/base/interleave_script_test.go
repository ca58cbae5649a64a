package base

import (
	"context"
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// scripted is the split reader. Except for its context it belongs to the fetcher.
type scripted struct {
	world    *world
	assigned []at // the first is served next
	ctx      context.Context
	closes   int
}

func (s *scripted) Fetch(ctx context.Context) (Fetched[num], error) {
	if ctx.Err() != nil {
		s.world.violate("a fetch began with a context that had ended: %v", context.Cause(ctx))
	}
	if len(s.assigned) == 0 {
		s.world.violate("a fetch began without a split to fetch")
		return Fetched[num]{}, errBroken
	}
	s.ctx = ctx
	v := s.world.fetcher.hold(fetching)
	var got Fetched[num]
	if v.data {
		got = s.bring()
	}
	return got, v.err
}

// bring makes the next batch of the split whose turn it is.
func (s *scripted) bring() Fetched[num] {
	split := s.assigned[0]
	s.assigned = slices.Delete(s.assigned, 0, 1)
	i := indexOf(split.SplitID())
	b := &brought{split: i, from: split.Next, to: nextEnd(i, split.Next)}
	s.world.brings(b)
	got := Fetched[num]{Release: func() { s.world.releases(b) }}
	for n := b.from; n < b.to; n++ {
		if (n-b.from)%perChunk == 0 {
			got.Chunks = append(got.Chunks, Chunk[num]{Split: split.SplitID()})
		}
		c := &got.Chunks[len(got.Chunks)-1]
		c.Elements = append(c.Elements, num{split.Name, n})
	}
	if split.Next = b.to; split.Next < end(i) {
		s.assigned = append(s.assigned, split)
	} else {
		got.Finished = []sdk.SplitID{split.SplitID()}
	}
	return got
}

// nextEnd is where the batch ends that begins at from.
func nextEnd(split int, from int64) int64 {
	for _, to := range batches[split] {
		if to > from {
			return to
		}
	}
	return from
}

func (s *scripted) HandleSplits(ch Change[at]) error {
	s.world.fetcher.hold(handling)
	s.assigned = append(s.assigned, ch.Added...)
	return nil
}

func (s *scripted) Close() error {
	s.closes++
	s.world.shuts()
	s.world.fetcher.hold(shutting)
	return nil
}
