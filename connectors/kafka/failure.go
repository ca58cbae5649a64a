package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// inspect looks at errors before anything of the fetches is emitted: in one result of the client they come after records, and
// records after a truncation are not those that follow the position. The client would report an error for every fetch from now
// on, so the first one either takes the partition aside, to be settled, or ends the reader. What the client is already curing by
// itself, a leader that moved, is passed over.
func (f *fetcher) inspect(fetches kgo.Fetches) error {
	var first error
	fetches.EachError(func(topic string, partition int32, err error) {
		p := f.parts[place{topic, partition}]
		if p == nil && partition >= 0 && topic != "" {
			return // of a partition that is not read any more
		}
		if !f.doubts(topic, p, err) && first == nil {
			first = explain(topic, partition, p, err)
		}
	})
	return first
}

// doubts takes errors that say something about positions or about the topic, which the cluster has to be asked about.
func (f *fetcher) doubts(topic string, p *partition, err error) bool {
	var loss *kgo.ErrDataLoss
	switch {
	case p != nil && errors.As(err, &loss):
		p.doubt, p.loss = divergent, loss
	case p != nil && errors.Is(err, kerr.OffsetOutOfRange):
		if p.doubt == noDoubt {
			p.doubt = offLimits
		}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		for at, each := range f.parts {
			if at.topic == topic && each.doubt == noDoubt {
				each.doubt = otherTopic
			}
		}
	default:
		return kerr.IsRetriable(err)
	}
	return true
}

// explain turns an error of the client into one for people. p is nil for an error of a whole topic or of the client.
func explain(name string, number int32, p *partition, err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return topicError(&topic{name: name, err: err})
	}
	if p == nil {
		return &PartitionError{
			Topic: name, Partition: number, Offset: -1, Err: err,
			Problem: fmt.Sprintf("the client reports: %v", err),
			Remedy:  "see the broker's log; broker_max_read_bytes must exceed fetch_max_bytes and the largest batch",
		}
	}
	e := &PartitionError{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Err: err, Problem: err.Error()}
	var large *kgo.ErrDecompressTooLarge
	switch {
	case errors.As(err, &large):
		e.Remedy = "raise max_decompress_batch_bytes; the batch ends before offset " + fmt.Sprint(large.NextOffset)
	case errors.Is(err, kerr.UnknownServerError):
		e.Remedy = "see the log of the partition's leader"
	default:
		e.Remedy = "the batch there cannot be read: it is damaged, or of a kind this build does not know; a start at a later offset skips it"
	}
	return e
}
