package kinesis

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
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
	if r.gap || r.vanished || r.old {
		if err, over := f.lost(s, r, out); over {
			f.give(r)
			return err
		}
	}
	s.confirmed = true
	if r.err != nil && len(r.elements) == 0 {
		f.give(r)
		return f.failed(s, r, now)
	}
	return f.page(s, r, now, out)
}

// page hands a page over and decides when the next is asked for.
func (f *fetcher) page(s *shard, r result, now time.Time, out *fetched) error {
	f.meters.dropped.Add(r.dropped)
	f.meters.broken.Add(r.broken)
	s.failures, s.expiries = 0, 0
	s.behind = r.behind
	s.budget.paid(r.began, r.bytes)
	s.learn(r.bytes)
	elements, stopped := until(r.elements, s.Stop)
	f.advance(s, r)
	s.iterator = r.next
	var end *End
	switch {
	case stopped, f.pastStop(s, r):
		end = &End{How: lineage.AtStop}
	case r.ended:
		end = &End{How: lineage.AtEnd, Children: r.children}
	}
	if end != nil {
		at := s.Position
		if stopped {
			at = lineage.Position{}
		}
		elements = append(elements, element{move: &move{to: at, end: end}})
		out.finished = append(out.finished, s.id)
		f.drop(s.id)
	} else if m := f.tip(s, r); m != nil {
		elements = append(elements, element{move: m})
	}
	f.add(out, s, elements, r)
	if end != nil {
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

// add puts elements into the chunks, with what they hold of the memory.
func (f *fetcher) add(out *fetched, s *shard, elements []element, r result) {
	if len(elements) == 0 {
		f.give(r)
		return
	}
	out.chunks = append(out.chunks, base.Chunk[element]{Split: s.id, Elements: elements, Bytes: r.bytes})
	out.pages++
	out.bytes += r.bytes
	f.service.shared.give(r.reserved - r.bytes)
}

// advance moves the place that is fetched next behind the page.
func (f *fetcher) advance(s *shard, r result) {
	if r.last.Concrete() {
		s.Position = r.last
	}
}

// pastStop reports that nothing which arrived before the stop is left: the service has read up to a time behind it, and a second more, because
// its clock comes in whole seconds.
func (f *fetcher) pastStop(s *shard, r result) bool {
	return s.Stop != 0 && r.behind >= 0 && r.at.UnixMilli()-r.behind >= s.Stop+time.Second.Milliseconds()
}

// tipEvery is how often the position of a shard without news is told to be up to date.
const tipEvery = time.Minute

// tip makes the position of a shard say that nothing followed it yet. Without that, a job that is started again could not tell an idle shard
// from one whose records expired meanwhile.
func (f *fetcher) tip(s *shard, r result) *move {
	if r.behind != 0 || len(r.elements) > 0 || s.Position.Kind != lineage.AfterSequence || r.at.Sub(s.told) < tipEvery {
		return nil
	}
	s.told = r.at
	s.Position.Millis = max(s.Position.Millis, r.at.UnixMilli())
	return &move{to: s.Position}
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

// lost decides about records that are gone: before the place (a gap), or the whole shard. over says that nothing more is to be done with the
// result.
func (f *fetcher) lost(s *shard, r result, out *fetched) (err error, over bool) { //nolint:revive,staticcheck // the flag says whether the error counts
	switch {
	case r.old: // a time from before what the stream holds: all of it
		s.Position, s.iterator = lineage.FromTrimHorizon(), ""
		s.confirmed = true
		f.queue.at(s, time.Now())
		return nil, true
	case r.vanished && f.source.OnLost == Fail:
		return f.lostError(s, "the stream does not list the shard any more: it expired before it was read to its end"), true
	case r.vanished:
		f.meters.moved.Add(1)
		f.log.warn("a shard expired before it was read to its end; going on with its children", "shard", s.Shard, "position", s.Position.String())
		out.chunks = append(out.chunks, base.Chunk[element]{Split: s.id, Elements: []element{{move: &move{to: s.Position, end: &End{How: lineage.AsLost}}}}})
		out.finished = append(out.finished, s.id)
		f.drop(s.id)
		return nil, true
	case f.source.OnLost == Fail:
		return f.lostError(s, fmt.Sprintf("the stream keeps records for %s, and nothing was read since %s: records may have expired", f.retention, stamp(s.Position.Millis))), true
	default:
		f.meters.moved.Add(1)
		f.log.warn("records may have expired before they were read; going on with the oldest there is", "shard", s.Shard, "position", s.Position.String())
		return nil, false
	}
}

func (f *fetcher) lostError(s *shard, problem string) error {
	return sdk.Fatal(&ShardError{
		Stream: f.source.name(), Shard: s.Shard, Position: s.Position, Problem: problem, Sentinel: ErrLost,
		Remedy: "set on_lost to continue to go on without them, or start the job without its saved state (--restore none); longer retention prevents it",
	})
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
