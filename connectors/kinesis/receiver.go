package kinesis

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// receiver is what polling and subscriptions have in common: the shards of a reader, and what becomes of the pages that come of them. It
// belongs to the fetcher's goroutine.
type receiver struct {
	source  Source
	service *service
	meters  meters
	log     *limitedLog

	shards  map[sdk.SplitID]*shard
	bell    chan struct{} // there is room for bytes
	holding atomic.Int64  // pages of this reader that are reserved
	// retention is what the service said last; measured when the gauges were set.
	retention time.Duration
	measured  time.Time
}

func newReceiver(v *service, m meters, log *limitedLog) receiver {
	return receiver{source: v.source, service: v, meters: m, log: log, shards: make(map[sdk.SplitID]*shard), bell: make(chan struct{}, 1)}
}

// fetched is what one Fetch hands over.
type fetched struct {
	chunks   []base.Chunk[element]
	finished []sdk.SplitID
	pages    int64
	bytes    int64 // reserved
}

func (o *fetched) empty() bool { return len(o.chunks) == 0 && len(o.finished) == 0 }

// hand makes the bytes return when the last element was emitted.
func (v *receiver) hand(out fetched) base.Fetched[element] {
	got := base.Fetched[element]{Chunks: out.chunks, Finished: out.finished}
	if out.pages > 0 {
		pages, bytes := out.pages, out.bytes
		got.Release = func() {
			v.holding.Add(-pages)
			v.service.shared.give(bytes)
			ring(v.bell)
		}
	}
	return got
}

// give returns what was reserved for a call that brought nothing.
func (v *receiver) give(r result) {
	v.holding.Add(-1)
	v.service.shared.give(r.reserved)
}

// receive takes a page: what of it is read, where the shard stands behind it, and whether it ends there. It reports the end.
func (v *receiver) receive(s *shard, r result, out *fetched) (over bool) {
	v.meters.dropped.Add(r.dropped)
	v.meters.broken.Add(r.broken)
	s.failures, s.expiries = 0, 0
	s.behind = r.behind
	elements, stopped := until(r.elements, s.Stop)
	if r.last.Concrete() {
		s.Position = r.last
	}
	var end *End
	switch {
	case stopped, pastStop(s, r):
		end = &End{How: lineage.AtStop}
	case r.ended:
		end = &End{How: lineage.AtEnd, Children: r.children}
	}
	if end != nil {
		at := s.Position
		if stopped {
			at = lineage.Position{} // that of the last record before the stop
		}
		elements = append(elements, element{move: &move{to: at, end: end}})
		out.finished = append(out.finished, s.id)
		v.drop(s.id)
	} else if m := tip(s, r); m != nil {
		elements = append(elements, element{move: m})
	}
	v.add(out, s, elements, r)
	return end != nil
}

// drop takes a shard out of the books. What still comes for it is answered to nobody.
func (v *receiver) drop(id sdk.SplitID) {
	if s := v.shards[id]; s != nil {
		s.gone = true
		delete(v.shards, id)
	}
}

// add puts elements into the chunks, with what they hold of the memory.
func (v *receiver) add(out *fetched, s *shard, elements []element, r result) {
	if len(elements) == 0 {
		v.give(r)
		return
	}
	out.chunks = append(out.chunks, base.Chunk[element]{Split: s.id, Elements: elements, Bytes: r.bytes})
	out.pages++
	out.bytes += r.bytes
	v.service.shared.give(r.reserved - r.bytes)
}

// pastStop reports that nothing which arrived before the stop is left: the service has read up to a time behind it, and a second more, because
// its clock comes in whole seconds.
func pastStop(s *shard, r result) bool {
	return s.Stop != 0 && r.behind >= 0 && r.at.UnixMilli()-r.behind >= s.Stop+time.Second.Milliseconds()
}

// tipEvery is how often the position of a shard without news is told to be up to date.
const tipEvery = time.Minute

// tip makes the position of a shard say that nothing followed it yet. Without that, a job that is started again could not tell an idle shard
// from one whose records expired meanwhile. With a subscription the place itself moves too.
func tip(s *shard, r result) *move {
	if r.continuation != "" {
		s.Position = lineage.Position{Kind: lineage.AfterSequence, Sequence: r.continuation, Sub: lineage.Whole, Millis: s.Position.Millis}
	}
	if r.behind != 0 || len(r.elements) > 0 || s.Position.Kind != lineage.AfterSequence || r.at.Sub(s.told) < tipEvery {
		return nil
	}
	s.told = r.at
	s.Position.Millis = max(s.Position.Millis, r.at.UnixMilli())
	return &move{to: s.Position}
}

// lost decides about records that are gone: before the place (a gap), or the whole shard. over says that nothing more is to be done with the
// result.
func (v *receiver) lost(s *shard, r result, out *fetched) (err error, over bool) { //nolint:revive // the flag says whether the error counts
	switch {
	case r.vanished && v.source.OnLost == Fail:
		return v.lostError(s, "the stream does not list the shard any more: it expired before it was read to its end"), true
	case r.vanished:
		v.meters.moved.Add(1)
		v.log.warn("a shard expired before it was read to its end; going on with its children", "shard", s.Shard, "position", s.Position.String())
		out.chunks = append(out.chunks, base.Chunk[element]{Split: s.id, Elements: []element{{move: &move{to: s.Position, end: &End{How: lineage.AsLost}}}}})
		out.finished = append(out.finished, s.id)
		v.drop(s.id)
		return nil, true
	case v.source.OnLost == Fail:
		return v.lostError(s, fmt.Sprintf("the stream keeps records for %s, and nothing was read since %s: records may have expired", v.retention, stamp(s.Position.Millis))), true
	default:
		v.meters.moved.Add(1)
		v.log.warn("records may have expired before they were read; going on with the oldest there is", "shard", s.Shard, "position", s.Position.String())
		return nil, false
	}
}

func (v *receiver) lostError(s *shard, problem string) error {
	return sdk.Fatal(&ShardError{
		Stream: v.source.name(), Shard: s.Shard, Position: s.Position, Problem: problem, Sentinel: ErrLost,
		Remedy: "set on_lost to continue to go on without them, or start the job without its saved state (--restore none); longer retention prevents it",
	})
}

// measure sets the gauges, at most once a second: with a thousand shards that is work.
func (v *receiver) measure(now time.Time) {
	if now.Sub(v.measured) < time.Second {
		return
	}
	v.measured = now
	v.meters.inFlight.Set(float64(v.service.shared.inFlight()))
	least, most, known, unknown := int64(-1), int64(-1), 0, 0
	for _, s := range v.shards {
		if s.behind < 0 {
			unknown++
			continue
		}
		known++
		if least < 0 || s.behind < least {
			least = s.behind
		}
		most = max(most, s.behind)
	}
	if known > 0 {
		v.meters.behindMin.Set(float64(least))
	} else {
		v.meters.behindMin.Unset()
	}
	if known > 0 && unknown == 0 {
		v.meters.behindMax.Set(float64(most))
	} else {
		v.meters.behindMax.Unset()
	}
}
