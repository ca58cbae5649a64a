package kinesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// subscriber reads the shards of a reader with enhanced fan-out. Each shard has a goroutine that holds its subscription and hands over one
// event at a time: nothing is read from a connection before what came on it was taken, so the service waits where we do. Everything else
// belongs to the fetcher's goroutine.
type subscriber struct {
	receiver
	opener opener
	arn    string // of the consumer

	run       context.Context //nolint:containedctx // of the subscriptions, which outlive a Fetch; ended by Close
	cancel    context.CancelFunc
	followers sync.WaitGroup
	events    chan result
	stops     map[*shard]context.CancelFunc
	lives     uint64 // counts followers
	failures  int    // to find the consumer
}

var _ base.SplitReader[element, Split] = (*subscriber)(nil)

func newSubscriber(v *service, m meters, log *limitedLog) *subscriber {
	run, cancel := context.WithCancel(context.Background())
	return &subscriber{
		receiver: newReceiver(v, m, log), opener: opener{v.source.Aggregated, v.source.FilterHashKeys},
		run: run, cancel: cancel, events: make(chan result), stops: make(map[*shard]context.CancelFunc),
	}
}

// Close implements [base.SplitReader].
func (f *subscriber) Close() error {
	f.cancel()
	f.followers.Wait()
	f.service.shared.leave(f.bell)
	f.service.close()
	return nil
}

// HandleSplits implements [base.SplitReader].
func (f *subscriber) HandleSplits(change base.Change[Split]) error {
	for _, id := range change.Removed {
		f.leave(f.shards[id])
		f.drop(id)
	}
	for _, split := range change.Added {
		s := &shard{Split: split, id: split.SplitID(), slot: -1, behind: -1}
		f.shards[s.id] = s
		f.follow(s)
	}
	for _, id := range change.Paused {
		if s := f.shards[id]; s != nil {
			s.paused = true
			f.leave(s)
		}
	}
	for _, id := range change.Resumed {
		if s := f.shards[id]; s != nil {
			s.paused = false
			f.follow(s)
		}
	}
	return nil
}

// follow starts the goroutine of a shard, from where it stands. Before the consumer is known there is nothing to subscribe to.
func (f *subscriber) follow(s *shard) {
	f.leave(s)
	if f.arn == "" || s.paused {
		return
	}
	ctx, stop := context.WithCancel(f.run)
	f.stops[s] = stop
	f.lives++
	s.life = f.lives
	fo := &follower{
		subscriber: f, caller: caller{f.service, f.opener},
		request: request{shard: s, split: s.Split, life: s.life, confirmed: s.confirmed},
	}
	f.followers.Go(func() { fo.loop(ctx) })
}

// leave ends the goroutine of a shard. What it still hands over is of an earlier life, and dropped.
func (f *subscriber) leave(s *shard) {
	if s == nil {
		return
	}
	if stop := f.stops[s]; stop != nil {
		stop()
		delete(f.stops, s)
	}
	s.life = 0
}

// Fetch implements [base.SplitReader].
func (f *subscriber) Fetch(ctx context.Context) (base.Fetched[element], error) {
	if err := f.ready(ctx); err != nil {
		return base.Fetched[element]{}, err
	}
	var out fetched
	for out.empty() {
		f.measure(time.Now())
		events := f.events
		if !f.service.shared.take(0, f.holding.Load() == 0, f.bell) {
			events = nil // the connections wait
		}
		select {
		case r := <-events:
			if err := f.take(r, &out); err != nil {
				return f.hand(out), err
			}
		case <-f.bell:
		case <-ctx.Done():
			return base.Fetched[element]{}, context.Cause(ctx)
		}
	}
	return f.hand(out), nil
}

// ready finds the consumer, before the first event can come.
func (f *subscriber) ready(ctx context.Context) error {
	if f.arn != "" {
		return nil
	}
	for f.arn == "" {
		arn, err := f.service.consumer(ctx)
		switch {
		case err == nil:
			f.arn = arn
			continue
		case ctx.Err() != nil, !passes(err):
			return err
		}
		f.failures++
		f.meters.failed.Add(1)
		f.log.warn("the consumer cannot be looked up at the moment", "error", err, "try", f.failures)
		if err := sleep(ctx, pause(f.failures)); err != nil {
			return err
		}
	}
	for _, s := range f.shards {
		f.follow(s)
	}
	return nil
}

// passes reports an error that says nothing but that the service cannot answer now. As with polling, a reader outlasts that.
func passes(err error) bool {
	switch failureOf(err) {
	case throttled, unreachable, unclear:
		return !errors.Is(err, ErrConsumer)
	case expired, missing, inUse, refused, denied, unknownCaller:
	}
	return false
}

// take applies what a follower handed over.
func (f *subscriber) take(r result, out *fetched) error {
	s := r.shard
	if s.gone || r.life != s.life {
		return nil
	}
	f.holding.Add(1)
	if r.sum != (summary{}) {
		f.retention = r.sum.retention
		s.confirmed = true
	}
	if r.gap || r.vanished {
		err, over := f.lost(s, r, out)
		f.give(r)
		if over && err == nil {
			f.leave(s)
		}
		return err
	}
	if r.err != nil {
		f.give(r)
		if r.fatal {
			return sdk.Fatal(r.err)
		}
		return r.err
	}
	if f.receive(s, r, out) {
		f.leave(s)
	}
	return nil
}

// takenOver says that somebody else subscribed in our place. A reader that was given up by its engine and does not know it stops by this; two
// that both insisted would take the shard from each other for ever.
func (v *service) takenOver(s Split, err error) error {
	return &ShardError{
		Stream: v.source.name(), Shard: s.Shard, Position: s.Position, Sentinel: ErrConsumer, Err: err,
		Problem: fmt.Sprintf("another reader subscribed with consumer %q in this one's place", v.source.Consumer),
		Remedy:  "give each job a consumer of its own (efo.consumer)",
	}
}

// errSilent ends a subscription on which nothing came for a while.
var errSilent = errors.New("no event came")

// place is where a subscription goes on after an event.
func (r *result) place(before lineage.Position) lineage.Position {
	switch {
	case r.continuation != "":
		at := lineage.After(r.continuation)
		at.Millis = r.last.Millis
		return at
	case r.last.Concrete():
		return r.last
	default:
		return before
	}
}
