package tail

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// fetcher stands between the receivers, which are pushed to, and the base reader, which asks. It belongs to the fetcher's goroutine.
type fetcher struct {
	shared
	buffer    int
	receivers map[sdk.SplitID]*receiver
	running   sync.WaitGroup
}

// shared is what of a fetcher its receivers may use: values that never change, and two channels.
type shared struct {
	source     *Source
	acks       *acks
	log        *slog.Logger
	giveUp     time.Duration
	reconnects sdk.Counter
	bell       chan struct{} // one ring: look into the buffers
	failed     chan error    // of the receiver that failed first
}

// ring wakes Fetch, now or the next time. A ring that is there already is enough.
func (s *shared) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// fail tells Fetch that a receiver has ended. One failure is enough.
func (s *shared) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
	s.ring()
}

// HandleSplits implements [base.SplitReader]. It does not wait for connections: that is what receivers are for.
func (f *fetcher) HandleSplits(c base.Change[Split]) error {
	for _, id := range c.Removed {
		f.receivers[id].cancel()
		delete(f.receivers, id)
	}
	for _, s := range c.Added {
		ctx, cancel := context.WithCancel(context.Background()) // the receiver outlives every fetch; Close ends it
		r := &receiver{
			topic: s.Topic, stop: s.Stop, next: s.Next, taken: s.Next, cancel: cancel, messages: make(chan message, f.buffer),
		}
		f.receivers[s.SplitID()] = r
		if r.ended() {
			continue
		}
		f.running.Go(func() {
			if err := r.run(ctx, &f.shared); err != nil {
				f.fail(err)
			}
		})
	}
	for _, id := range c.Paused {
		f.receivers[id].paused = true
	}
	for _, id := range c.Resumed {
		f.receivers[id].paused = false
	}
	return nil
}

// Fetch implements [base.SplitReader]: what is in the buffers, or else what comes into them next.
func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[message], error) {
	for {
		var err error
		select {
		case err = <-f.failed: // asked first: what was received before the failure is in a buffer by now
		default:
		}
		if got := f.take(); err != nil || len(got.Chunks) > 0 || len(got.Finished) > 0 {
			return got, err
		}
		select {
		case <-f.bell:
		case <-ctx.Done(): // what comes meanwhile waits in its buffer for the next Fetch
			return base.Fetched[message]{}, context.Cause(ctx)
		}
	}
}

// take empties the buffers of all topics that are not paused.
func (f *fetcher) take() (got base.Fetched[message]) {
	for id, r := range f.receivers {
		if r.paused {
			continue
		}
		chunk := base.Chunk[message]{Split: id}
		for range len(r.messages) { // and no more, so that this ends
			m := <-r.messages
			chunk.Elements = append(chunk.Elements, m)
			chunk.Bytes += int64(len(m.text))
			r.taken++
		}
		if len(chunk.Elements) > 0 {
			got.Chunks = append(got.Chunks, chunk)
		}
		if r.ended() {
			got.Finished = append(got.Finished, id)
			r.cancel()
			delete(f.receivers, id)
		}
	}
	return got
}

// Close implements [base.SplitReader].
func (f *fetcher) Close() error {
	for _, r := range f.receivers {
		r.cancel()
	}
	f.running.Wait()
	return nil
}
