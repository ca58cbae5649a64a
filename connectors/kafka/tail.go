package kafka

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// awaitsStop reports that a partition which is being read has not reached its stop.
func (f *fetcher) awaitsStop() bool {
	for _, p := range f.parts {
		if p.waitsForStop() {
			return true
		}
	}
	return false
}

func (p *partition) waitsForStop() bool { return p.Stop != NoStop && !p.paused && !p.waiting }

// checkTails asks the brokers about partitions that wait for their stop while nothing comes. What is left before the stop may be
// nothing that the client would ever show: compacted gaps, emptied batches, or records that were deleted meanwhile below an open
// transaction. The broker's answer decides, not the time that passed. A question without an answer is asked again later.
func (f *fetcher) checkTails(ctx context.Context) error {
	var waiting []*partition
	topics := make(map[string]bool)
	for _, p := range f.parts {
		if p.waitsForStop() {
			waiting = append(waiting, p)
			topics[p.Topic] = true
		}
	}
	found, err := f.topics(ctx, slices.Collect(maps.Keys(topics)))
	if err != nil {
		return passing(ctx, err)
	}
	done := make(topicPartitions)
	for _, p := range waiting {
		if ok, err := f.present(p, found[p.Topic]); err != nil {
			return err
		} else if !ok {
			continue
		}
		leader := found[p.Topic].leaders[p.Partition]
		if leader < 0 {
			continue
		}
		if f.nothingLeft(ctx, p, leader) {
			done.add(p.place())
			f.finish(p)
		}
		if ctx.Err() != nil {
			break
		}
	}
	f.park(done)
	return nil
}

// passing returns only errors that waiting does not cure, and the cause of ctx.
func passing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if transient(err) {
		return nil
	}
	return err
}

// maxTailFetches bounds the emptied batches that one look steps over.
const maxTailFetches = 64

// nothingLeft reports that the log holds no readable record from p's next offset up to its stop. Kafka answers a fetch of one
// partition with at least one batch if there is one below the isolation's bound, so an empty answer with the bound at or past
// the stop is proof. Anything with records in it reaches the reader through the client.
func (f *fetcher) nothingLeft(ctx context.Context, p *partition, leader int32) bool {
	next := p.Offset
	for range maxTailFetches {
		got, ok := f.fetchRaw(ctx, p, leader, next)
		if !ok {
			return false
		}
		bound := got.LastStableOffset
		if f.source.Isolation == ReadUncommitted {
			bound = got.HighWatermark
		}
		if len(got.RecordBatches) == 0 {
			return bound >= p.Stop
		}
		parsed, after := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			KeepControlRecords: true,
			Offset:             next,
			IsolationLevel:     f.source.Isolation.fetchLevel(),
			Topic:              p.Topic,
			Partition:          p.Partition,
		}, got, kgo.DefaultDecompressor(), nil)
		switch {
		case parsed.Err != nil:
			return false // the client meets the same error and reports it
		case len(parsed.Records) > 0:
			return parsed.Records[0].Offset >= p.Stop
		case after >= p.Stop:
			return true
		case after <= next:
			return false
		}
		next = after
	}
	return false
}

// firstBatch as the size of a fetch brings the first batch, whatever its size, and no other: to see that there is one is enough.
const firstBatch = 1

// fetchRaw fetches the first batch of one partition from next on, outside of the client's own fetching. An answer that does not list the
// partition is a throttled one and says nothing.
func (f *fetcher) fetchRaw(ctx context.Context, p *partition, leader int32, next int64) (*kmsg.FetchResponseTopicPartition, bool) {
	ask := kmsg.NewFetchRequestTopicPartition()
	ask.Partition = p.Partition
	ask.CurrentLeaderEpoch = -1
	ask.FetchOffset = next
	ask.LastFetchedEpoch = -1
	ask.LogStartOffset = -1
	ask.PartitionMaxBytes = firstBatch
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.Topic, p.TopicID
	topic.Partitions = append(topic.Partitions, ask)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID = -1
	req.SessionEpoch = -1
	req.MaxBytes = firstBatch
	req.IsolationLevel = f.source.Isolation.level()
	req.Topics = append(req.Topics, topic)

	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	resp, err := f.client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, false
	}
	fetched, ok := resp.(*kmsg.FetchResponse)
	if !ok || fetched.ErrorCode != 0 {
		return nil, false
	}
	for i := range fetched.Topics {
		for j := range fetched.Topics[i].Partitions {
			if got := &fetched.Topics[i].Partitions[j]; got.Partition == p.Partition && got.ErrorCode == 0 {
				return got, true
			}
		}
	}
	return nil, false
}
