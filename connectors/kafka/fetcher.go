package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// emptyPause is the wait after fetches that brought no record: the client tries again only when they have been taken from it.
const emptyPause = 100 * time.Millisecond

// fetcher reads all partitions of a reader through one client. Everything but the client belongs to the fetcher goroutine.
type fetcher struct {
	source  Source
	client  *kgo.Client
	watch   *watch
	cluster cluster
	lag     *lag
	log     limitedLog

	parts  map[place]*partition
	ids    map[sdk.SplitID]place
	parked map[place]bool // finished, but still in the client; see park
	// starting waits to be checked and handed to the client, not before nextCheck.
	starting  []*partition
	nextCheck time.Time
	waits     string // why it last waited for the cluster, as logged
	// moves and finished wait to be told with the next fetch.
	moves    []base.Chunk[*kgo.Record]
	finished []sdk.SplitID
	moved    moves
}

// partition is a split on the fetcher's side.
type partition struct {
	Split   // the next record to hand over
	id      sdk.SplitID
	paused  bool
	waiting bool // in starting, and not in the client

	missingSince time.Time // since when the cluster does not list it, zero while it does
	missingTold  bool
	doubt        doubt            // why it is not read on before it was looked at
	loss         *kgo.ErrDataLoss // what came with a divergence
	newID        [16]byte         // of a topic created anew that is to be read, until its start is known
	strikes      int              // refusals since the last record
}

var _ base.SplitReader[*kgo.Record, Split] = (*fetcher)(nil)

func newFetcher(source Source, ctx sdk.ReaderContext, lag *lag) (*fetcher, error) {
	log, hunger := newLimitedLog(ctx.Logger()), newAppetite(&source)
	source.Client = append(slices.Clip(source.Client), kgo.WithHooks(hunger))
	client, connections, err := source.fetchClient(clientLog{log}, newHealth(ctx.Metrics(), log, loginText(source.SASL)))
	if err != nil {
		return nil, err
	}
	hunger.feed(client)
	return &fetcher{
		source: source, client: client, watch: watchOver(client, connections, source.FetchMaxWait), cluster: source.ask(client), lag: lag, log: log,
		parts: make(map[place]*partition), ids: make(map[sdk.SplitID]place), parked: make(map[place]bool),
		moved: newMoves(ctx.Metrics(), ctx.Logger()),
	}, nil
}

// Close implements [base.SplitReader].
func (f *fetcher) Close() error {
	f.watch.close()
	f.client.Close()
	return nil
}

// HandleSplits implements [base.SplitReader].
func (f *fetcher) HandleSplits(change base.Change[Split]) error {
	f.remove(change.Removed)
	for _, s := range change.Added {
		p := &partition{Split: s, id: s.SplitID()}
		f.parts[s.place()], f.ids[p.id] = p, s.place()
		f.await(p)
		f.nextCheck = time.Time{}
		f.lag.track(s)
	}
	f.pause(change.Paused, true)
	f.pause(change.Resumed, false)
	return nil
}

func (f *fetcher) remove(ids []sdk.SplitID) {
	gone := make(topicPartitions)
	for _, id := range ids {
		at, ok := f.ids[id]
		if !ok {
			continue
		}
		p := f.parts[at]
		delete(f.parts, at)
		delete(f.ids, id)
		f.lag.forget(id)
		if !p.waiting {
			gone.add(at)
		}
		p.waiting = false
		f.moves = slices.DeleteFunc(f.moves, func(c base.Chunk[*kgo.Record]) bool { return c.Split == id })
	}
	f.starting = slices.DeleteFunc(f.starting, func(p *partition) bool { return !p.waiting })
	if len(gone) > 0 {
		f.client.RemoveConsumePartitions(gone)
	}
}

func (f *fetcher) pause(ids []sdk.SplitID, paused bool) {
	changed := make(topicPartitions)
	for _, id := range ids {
		at, ok := f.ids[id]
		if !ok {
			continue
		}
		p := f.parts[at]
		p.paused = paused
		if !p.waiting {
			changed.add(at)
		}
	}
	switch {
	case len(changed) == 0:
	case paused:
		f.client.PauseFetchPartitions(changed)
	default:
		f.client.ResumeFetchPartitions(changed)
	}
}

// Fetch implements [base.SplitReader].
func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[*kgo.Record], error) {
	var out base.Fetched[*kgo.Record]
	for {
		if err := f.start(ctx); err != nil {
			return f.tell(out), err
		}
		if out = f.tell(out); len(out.Chunks) > 0 || len(out.Finished) > 0 {
			return out, nil
		}
		fetches, err := f.poll(ctx)
		if err != nil {
			return out, err
		}
		if fetches == nil {
			if err := f.checkTails(ctx); err != nil {
				return out, err
			}
			continue
		}
		if err := f.inspect(fetches); err != nil {
			return out, err
		}
		out.Chunks = f.take(fetches)
		f.setAside()
		if out = f.tell(out); len(out.Chunks) > 0 || len(out.Finished) > 0 {
			return out, nil
		}
		if err := sleep(ctx, emptyPause); err != nil { // nothing but errors, which come again at once
			return out, err
		}
	}
}

// tell adds what waits to be told.
func (f *fetcher) tell(out base.Fetched[*kgo.Record]) base.Fetched[*kgo.Record] {
	out.Chunks = append(out.Chunks, f.moves...)
	out.Finished = append(out.Finished, f.finished...)
	f.moves, f.finished = nil, nil
	return out
}

// poll waits for records. It returns nothing at all when there is something else to do: partitions are to be looked at, or the
// brokers stayed silent for two fetches about one that waits for its stop, which may lie behind markers or gaps that the
// client never shows.
func (f *fetcher) poll(ctx context.Context) (kgo.Fetches, error) {
	waiting := ctx
	if until, ok := f.pollUntil(); ok {
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	fetches := f.client.PollFetches(waiting)
	err := fetches.Err0()
	switch {
	case err == nil:
		return fetches, nil
	case errors.Is(err, kgo.ErrClientClosed):
		return nil, fmt.Errorf("kafka: %w", err)
	case waiting.Err() == nil || !errors.Is(err, waiting.Err()):
		return fetches, nil // an error of a partition
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, nil
	}
}

func (f *fetcher) pollUntil() (until time.Time, ok bool) {
	if f.awaitsStop() {
		until, ok = time.Now().Add(2*f.source.FetchMaxWait), true
	}
	if len(f.starting) > 0 && (!ok || f.nextCheck.Before(until)) {
		until, ok = f.nextCheck, true
	}
	return until, ok
}

// take turns fetched records into chunks, one a partition, cut at the stop. Records of a log that was written anew are left: they do
// not follow those that were read.
func (f *fetcher) take(fetches kgo.Fetches) []base.Chunk[*kgo.Record] {
	var chunks []base.Chunk[*kgo.Record]
	done := make(topicPartitions)
	fetches.EachPartition(func(got kgo.FetchTopicPartition) {
		p := f.parts[place{got.Topic, got.Partition}]
		if p == nil || p.waiting || p.doubt == divergent {
			return
		}
		f.lag.learn(p.id, f.end(p, got.FetchPartition))
		records, reached := p.cut(got.Records)
		if len(records) > 0 {
			last := records[len(records)-1]
			p.Offset, p.Epoch, p.strikes = last.Offset+1, last.LeaderEpoch, 0
			chunks = append(chunks, base.Chunk[*kgo.Record]{Split: p.id, Elements: records, Bytes: memoryOf(records)})
		}
		if reached || p.ended() {
			done.add(p.place())
			f.finish(p)
		}
	})
	f.park(done)
	return chunks
}

// end is how far records of p count as pending.
func (f *fetcher) end(p *partition, got kgo.FetchPartition) int64 {
	switch {
	case p.Stop != NoStop:
		return p.Stop
	case f.source.Isolation == ReadUncommitted:
		return got.HighWatermark
	default:
		return got.LastStableOffset
	}
}

// cut drops the records from the stop on and says whether there were any, which proves that nothing before it is left.
func (p *partition) cut(records []*kgo.Record) (before []*kgo.Record, reached bool) {
	if p.Stop == NoStop || len(records) == 0 || records[len(records)-1].Offset < p.Stop {
		return records, false
	}
	n := sort.Search(len(records), func(i int) bool { return records[i].Offset >= p.Stop })
	return records[:n], true
}

// finish takes p out of the books, to be reported with what Fetch returns next. What is left of it is what was handed over.
func (f *fetcher) finish(p *partition) {
	delete(f.parts, p.place())
	delete(f.ids, p.id)
	f.finished = append(f.finished, p.id)
	f.lag.learn(p.id, p.Offset)
}

// park makes the client fetch no more of finished partitions. Taking them out would throw away what is fetched of all others.
func (f *fetcher) park(done topicPartitions) {
	if len(done) == 0 {
		return
	}
	for topic, partitions := range done {
		for _, number := range partitions {
			f.parked[place{topic, number}] = true
		}
	}
	f.client.PauseFetchPartitions(done)
}

// topicPartitions is what the client wants to be told.
type topicPartitions map[string][]int32

func (m topicPartitions) add(p place) { m[p.topic] = append(m[p.topic], p.partition) }
