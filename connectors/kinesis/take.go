package kinesis

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// take applies the result of a call to its shard and adds what it brought to out.
func (f *fetcher) take(r result, out *fetched) error {
	f.running--
	s := r.shard
	s.busy = false
	if s.gone {
		f.give(r)
		return nil
	}
	if r.sum != (summary{}) {
		f.retention = r.sum.retention
	}
	now := time.Now()
	if r.wait > 0 { // the place lies in the future
		f.give(r)
		f.queue.at(s, now.Add(min(r.wait, idleWait)))
		return nil
	}
	if r.old { // a time from before what the stream holds: all of it is read
		f.give(r)
		s.Position, s.confirmed = lineage.FromTrimHorizon(), true
		f.queue.at(s, now)
		return nil
	}
	if r.gap || r.vanished {
		if err, over := f.lost(s, r, out); over {
			f.give(r)
			return err
		}
	}
	s.confirmed = true
	if r.err != nil && len(r.elements) == 0 {
		f.give(r)
		s.iterator = r.iterator // also one that was made for this call: it stays good
		return f.failed(s, r, now)
	}
	return f.page(s, r, now, out)
}

// page hands a page over and decides when the next is asked for.
func (f *fetcher) page(s *shard, r result, now time.Time, out *fetched) error {
	s.budget.paid(r.began, r.bytes)
	s.learn(r.bytes)
	s.iterator = r.next
	if f.receive(s, r, out) {
		return nil
	}
	if r.err != nil { // an end that could not be confirmed: asked again, behind what came with it
		s.iterator = ""
		return f.failed(s, r, now)
	}
	if err := f.trapped(s, r); err != nil {
		return err
	}
	due := now
	if r.behind == 0 && len(r.elements) == 0 {
		due = now.Add(jitter(f.source.PollInterval))
	}
	f.queue.at(s, due)
	return nil
}

// trapLimit is how many empty pages in a row from before what the stream holds show that an iterator is trapped there.
const trapLimit = 5

// trapped finds an iterator that points before the oldest record and brings nothing for ever, which the service has been seen to do.
func (f *fetcher) trapped(s *shard, r result) error {
	if len(r.elements) > 0 || f.retention == 0 || r.behind < f.retention.Milliseconds() {
		s.stuck = 0
		return nil
	}
	if s.stuck++; s.stuck < trapLimit {
		return nil
	}
	s.stuck = 0
	if f.source.OnLost == Fail {
		return f.lostError(s, fmt.Sprintf("its records expired before they were read: the service is at %s before the end, and keeps %s", time.Duration(r.behind)*time.Millisecond, f.retention))
	}
	f.meters.moved.Add(1)
	f.log.warn("records expired before they were read; going on with the oldest there is", "shard", s.Shard, "position", s.Position.String())
	s.Position, s.iterator = lineage.FromTrimHorizon(), ""
	return nil
}

// Tries before an error ends the reader's attempt. Throttling and a service that does not answer never do: they pass.
const (
	maxExpiries = 20
	maxDenied   = 3
)

// failed plans another try, or returns what no try can cure.
func (f *fetcher) failed(s *shard, r result, now time.Time) error {
	if f.run.Err() != nil {
		return context.Cause(f.run)
	}
	if r.fatal {
		return sdk.Fatal(r.err)
	}
	s.failures++
	switch r.kind {
	case throttled:
		f.meters.throttled.Add(1)
		s.budget.throttled(now)
		f.queue.at(s, now.Add(jitter(afterThrottle)))
		return nil
	case expired:
		f.meters.expired.Add(1)
		s.iterator = ""
		s.failures--
		if s.expiries++; s.expiries >= maxExpiries {
			return fmt.Errorf("kinesis: shard %s: %d iterators in a row had expired when they were used: %w", s.Shard, s.expiries, r.err)
		}
		due := now
		if s.expiries > 1 {
			due = now.Add(pause(s.expiries - 1))
		}
		f.queue.at(s, due)
		return nil
	case denied, unknownCaller:
		if s.failures >= maxDenied {
			return r.err
		}
	case missing, inUse, refused, unreachable, unclear:
	}
	f.meters.failed.Add(1)
	f.log.warn("a shard cannot be read at the moment", "shard", s.Shard, "error", r.err, "try", s.failures)
	s.behind = -1
	f.queue.at(s, now.Add(pause(s.failures)))
	return nil
}
