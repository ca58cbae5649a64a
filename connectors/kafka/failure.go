package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// explainWithin bounds the questions that make an error clearer.
const explainWithin = 2 * time.Second

// firstError looks for errors before anything of the fetches is emitted: in one result of the client they come after records,
// and records after a truncation are not those that follow the position. The client would report such an error for every fetch from
// now on, so the first one ends the reader.
func (f *fetcher) firstError(ctx context.Context, fetches kgo.Fetches) error {
	var first error
	fetches.EachError(func(topic string, partition int32, err error) {
		if first != nil {
			return
		}
		p := f.parts[place{topic, partition}]
		if p == nil && partition >= 0 && topic != "" {
			return // of a partition that is not read any more
		}
		first = f.explain(ctx, topic, partition, p, err)
	})
	return first
}

// explain turns an error of the client into one for people. p is nil for an error of a whole topic or of the client.
func (f *fetcher) explain(ctx context.Context, name string, number int32, p *partition, err error) error {
	if p == nil {
		if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.UnknownTopicOrPartition) {
			return topicError(&topic{name: name, err: err})
		}
		return &PartitionError{
			Topic: name, Partition: number, Offset: -1, Err: err,
			Problem: fmt.Sprintf("the client reports: %v", err),
			Remedy:  "see the broker's log; broker_max_read_bytes must exceed fetch_max_bytes and the largest batch",
		}
	}
	var loss *kgo.ErrDataLoss
	switch {
	case errors.As(err, &loss):
		return truncated(p.Split, loss)
	case errors.Is(err, kerr.OffsetOutOfRange):
		start, end := f.bounds(ctx, p.place())
		return outOfRange(p.Split, start, end, err)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		return f.explainID(ctx, p, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return topicError(&topic{name: name, err: err})
	}
	e := &PartitionError{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Err: err, Problem: err.Error()}
	var large *kgo.ErrDecompressTooLarge
	switch {
	case errors.As(err, &large):
		e.Remedy = "raise max_decompress_batch_bytes; the batch ends before offset " + fmt.Sprint(large.NextOffset)
	case kerr.IsRetriable(err):
		e.Remedy = "the reader starts again; see the broker's log if it stays"
	case errors.Is(err, kerr.UnknownServerError):
		e.Remedy = "see the log of the partition's leader"
	default:
		e.Remedy = "the batch there cannot be read: it is damaged, or of a kind this build does not know; a start at a later offset skips it"
	}
	return e
}

// bounds asks where the log begins and ends; -1 when there is no answer in time.
func (f *fetcher) bounds(ctx context.Context, at place) (start, end int64) {
	ctx, cancel := context.WithTimeout(ctx, explainWithin)
	defer cancel()
	first, err := f.cluster.offsets(ctx, []place{at}, askEarliest, ReadUncommitted)
	if err != nil {
		return -1, -1
	}
	last, err := f.cluster.offsets(ctx, []place{at}, askLatest, ReadUncommitted)
	if err != nil {
		return -1, -1
	}
	return first[at].offset, last[at].offset
}

// explainID tells a topic that was created anew from one that is gone and from a broker that has not learnt of it yet. Only
// the first is there to stay.
func (f *fetcher) explainID(ctx context.Context, p *partition, err error) error {
	ctx, cancel := context.WithTimeout(ctx, explainWithin)
	defer cancel()
	topics, asked := f.cluster.topics(ctx, []string{p.Topic})
	if asked != nil {
		return errors.Join(topicMissing(p.Split, err), asked)
	}
	if t := topics[p.Topic]; t.err == nil && t.id != p.TopicID && p.TopicID != [16]byte{} {
		return replaced(p.Split, t.id)
	}
	return topicMissing(p.Split, err)
}
