package kinesis

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// fetcher polls the shards of a reader. Each poll is made by a goroutine of its own, a bounded number at a time, and hands its result back;
// everything else belongs to the fetcher's goroutine. A poll outlives the Fetch that began it: what it brings waits for the next one, so a
// wakeup never loses a page, and is never held up by one.
type fetcher struct {
	receiver
	caller caller

	run    context.Context //nolint:containedctx // of the calls, which outlive a Fetch; ended by Close
	cancel context.CancelFunc
	calls  sync.WaitGroup

	queue   queue
	running int
	results chan result // has room for all that run
}

var _ base.SplitReader[element, Split] = (*fetcher)(nil)

func newFetcher(v *service, m meters, log *limitedLog) *fetcher {
	run, cancel := context.WithCancel(context.Background())
	return &fetcher{
		receiver: newReceiver(v, m, log), caller: caller{v, opener{v.source.Aggregated, v.source.FilterHashKeys}},
		run: run, cancel: cancel, results: make(chan result, v.source.Concurrency),
	}
}

// Close implements [base.SplitReader]. Calls end with their context.
func (f *fetcher) Close() error {
	f.cancel()
	f.calls.Wait()
	for f.running > 0 {
		f.give(<-f.results)
		f.running--
	}
	f.service.shared.leave(f.bell)
	f.service.close()
	return nil
}

// HandleSplits implements [base.SplitReader].
func (f *fetcher) HandleSplits(change base.Change[Split]) error {
	for _, id := range change.Removed {
		f.out(id)
	}
	now := time.Now()
	for _, split := range change.Added {
		s := &shard{Split: split, id: split.SplitID(), slot: -1, expect: firstPage, behind: -1, budget: f.service.shared.budget(split.Shard, now)}
		f.shards[s.id] = s
		f.queue.at(s, now)
	}
	for _, id := range change.Paused {
		if s := f.shards[id]; s != nil {
			s.paused = true
			f.queue.out(s)
		}
	}
	for _, id := range change.Resumed {
		if s := f.shards[id]; s != nil {
			s.paused = false
			f.queue.at(s, now)
		}
	}
	return nil
}

// out takes a shard out of the books and of the queue.
func (f *fetcher) out(id sdk.SplitID) {
	if s := f.shards[id]; s != nil {
		f.queue.out(s)
		f.drop(id)
	}
}

// Fetch implements [base.SplitReader].
func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[element], error) {
	var out fetched
	for {
		if err := f.collect(&out); err != nil || !out.empty() {
			return f.hand(out), err
		}
		now := time.Now()
		f.measure(now)
		wait := f.launch(now)
		timer := time.NewTimer(wait)
		select {
		case r := <-f.results:
			timer.Stop()
			if err := f.take(r, &out); err != nil {
				return f.hand(out), err
			}
		case <-f.bell:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return base.Fetched[element]{}, context.Cause(ctx)
		}
	}
}

// collect takes the results that are there.
func (f *fetcher) collect(out *fetched) error {
	for {
		select {
		case r := <-f.results:
			if err := f.take(r, out); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// idleWait bounds a wait when nothing is due: everything that ends it earlier rings.
const idleWait = time.Minute

// launch begins the calls that are due, as far as the limits allow, and answers how long to wait for the next.
func (f *fetcher) launch(now time.Time) time.Duration {
	for len(f.queue) > 0 && f.running < f.source.Concurrency {
		s := f.queue[0]
		if wait := s.due.Sub(now); wait > 0 {
			return min(wait, idleWait)
		}
		if !f.service.shared.take(s.expect, f.holding.Load() == 0, f.bell) {
			return idleWait
		}
		if wait := s.budget.take(now); wait > 0 {
			f.service.shared.give(s.expect)
			f.queue.at(s, now.Add(wait))
			continue
		}
		f.begin(s, now)
	}
	return idleWait
}

// begin starts a call. The results have room for all that may run, so the goroutine never waits to hand its own over.
func (f *fetcher) begin(s *shard, now time.Time) {
	heap.Pop(&f.queue)
	s.busy = true
	f.running++
	f.holding.Add(1)
	f.meters.calls.Add(1)
	q := request{shard: s, split: s.Split, iterator: s.iterator, confirmed: s.confirmed, began: now, reserved: s.expect}
	f.calls.Go(func() { f.results <- f.caller.run(f.run, q) })
}
