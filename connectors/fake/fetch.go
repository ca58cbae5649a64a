package fake

import (
	"context"
	"math"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// fetcher makes chunks, one split after the other. Everything in it belongs to its goroutine. An element is the index of a
// record: what fetching brings into memory should not outweigh what an engine adds.
type fetcher struct {
	source *Source
	splits []*fetched // in the order of their turns
}

// fetched is a split where fetching stands.
type fetched struct {
	Split
	paused bool
}

var _ base.SplitReader[int64, Split] = (*fetcher)(nil)

func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[int64], error) {
	if err := pause(ctx, f.source.cfg.Faults.FetchLatency); err != nil {
		return base.Fetched[int64]{}, err
	}
	s := f.turn()
	if hook := f.source.Hooks.BeforeFetch; hook != nil {
		if err := hook(ctx, s.Number, s.Next); err != nil {
			return base.Fetched[int64]{}, err
		}
	}
	for {
		fault, struck := f.source.script.strike(true, s.Number, s.Next)
		if !struck {
			break
		}
		if err := f.suffer(ctx, fault); err != nil {
			return base.Fetched[int64]{}, err
		}
	}
	return f.chunk(s), nil
}

// turn answers the next split that is not paused and puts it behind the others. There is one, or Fetch is not called.
func (f *fetcher) turn() *fetched {
	for range f.splits {
		s := f.splits[0]
		copy(f.splits, f.splits[1:])
		f.splits[len(f.splits)-1] = s
		if !s.paused {
			return s
		}
	}
	return &fetched{Split: Split{End: math.MaxInt64}}
}

// suffer does what the fault says. No error means that it is over.
func (f *fetcher) suffer(ctx context.Context, fault Fault) error {
	switch fault.Kind {
	case FailFetch:
		return fault.err()
	case PanicFetch:
		panic(fault.err())
	case StuckFetch:
		select {
		case <-f.source.script.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case DeafFetch:
		<-f.source.script.released
	case FailEmit, PanicEmit, StuckPoll, DeafPoll: // not ours
	}
	return nil
}

// chunk makes the next records of s, up to the next fault or the end.
func (f *fetcher) chunk(s *fetched) base.Fetched[int64] {
	cfg := &f.source.cfg
	to := min(s.Next+int64(cfg.ChunkSize), f.source.script.nextAt(true, s.Number, s.Next+1))
	if s.End > 0 {
		to = min(to, s.End)
	}
	n := int(max(0, to-s.Next))
	c := base.Chunk[int64]{Split: s.SplitID(), Elements: make([]int64, n), Bytes: int64(n) * int64(cfg.RecordSize)}
	for i := range c.Elements {
		c.Elements[i] = s.Next
		s.Next++
	}
	got := base.Fetched[int64]{Chunks: []base.Chunk[int64]{c}}
	if s.done() {
		got.Finished = []sdk.SplitID{c.Split}
		f.remove(c.Split)
	}
	return got
}

func (f *fetcher) HandleSplits(change base.Change[Split]) error {
	for _, id := range change.Removed {
		f.remove(id)
	}
	for _, s := range change.Added {
		f.splits = append(f.splits, &fetched{Split: s})
	}
	for _, id := range change.Paused {
		f.setPaused(id, true)
	}
	for _, id := range change.Resumed {
		f.setPaused(id, false)
	}
	return nil
}

func (f *fetcher) setPaused(id sdk.SplitID, paused bool) {
	for _, s := range f.splits {
		if s.SplitID() == id {
			s.paused = paused
		}
	}
}

func (f *fetcher) remove(id sdk.SplitID) {
	for i, s := range f.splits {
		if s.SplitID() == id {
			f.splits = append(f.splits[:i], f.splits[i+1:]...)
			return
		}
	}
}

func (f *fetcher) Close() error { return nil }
