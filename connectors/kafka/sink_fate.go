package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fate is what became of a transaction, as far as the log of a partition that it wrote to tells.
type fate int

const (
	fateOpen      fate = iota // not ended yet, or an older transaction hides its end
	fateCommitted             // its records are there for everybody
	fateAborted               // its records are there and will never be seen
	fateDeleted               // its place lies before the start of the log, or the topic is gone: nobody can read it, either way
	fateUnknown               // its place is there and holds something else: compacted away, or the topic was created anew
)

// fateOf asks the logs that a transaction wrote to. The coordinator remembers only the last transaction of an id, and forgets ids
// after a week; the log knows as long as it keeps the records.
func (c cluster) fateOf(ctx context.Context, p *prepared) (fate, error) {
	result := fateUnknown
	for i := range p.Places {
		f, err := c.fateAt(ctx, p, &p.Places[i])
		if err != nil {
			return 0, err
		}
		if f == fateCommitted || f == fateAborted {
			return f, nil
		}
		result = min(result, f) // open may still become known, and deleted is a reason
	}
	return result, nil
}

// fateAt asks the log of one partition: it fetches, as a reader of committed records would, from the first record's offset. The
// answer says how far the log is decided, and which transactions in it were aborted.
func (c cluster) fateAt(ctx context.Context, p *prepared, w *written) (fate, error) {
	topics, err := c.topics(ctx, []string{w.Topic})
	if err != nil {
		return 0, err
	}
	t := topics[w.Topic]
	leader, exists := t.leaders[w.Partition]
	switch {
	case errors.Is(t.err, kerr.UnknownTopicOrPartition), t.err == nil && !exists:
		return fateDeleted, nil
	case t.err != nil:
		return 0, topicError(t)
	case leader < 0:
		return fateOpen, nil
	}
	resp, err := c.client.Broker(int(leader)).Request(ctx, fateRequest(t, w))
	if err != nil {
		return 0, unreachable(ctx, err, c.login)
	}
	fetched, ok := resp.(*kmsg.FetchResponse)
	if !ok || len(fetched.Topics) != 1 || len(fetched.Topics[0].Partitions) != 1 {
		return fateOpen, nil // a broker that enforces a quota answers with nothing
	}
	part := &fetched.Topics[0].Partitions[0]
	switch err := kerr.ErrorForCode(part.ErrorCode); {
	case err == nil:
		return p.fateIn(part, w), nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		return c.fateOutside(ctx, w)
	case kerr.IsRetriable(err):
		return fateOpen, nil
	default:
		return 0, fmt.Errorf("kafka sink: look for the end of transactional id %q in topic %q partition %d: %w", p.ID, w.Topic, w.Partition, err)
	}
}

func fateRequest(t *topic, w *written) *kmsg.FetchRequest {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = w.Partition
	partition.FetchOffset = w.First
	partition.PartitionMaxBytes = 1 // brings one whole batch
	of := kmsg.NewFetchRequestTopic()
	of.Topic, of.TopicID = t.name, t.id
	of.Partitions = append(of.Partitions, partition)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 1 << 20 // the embedded broker leaves aborted transactions out of an answer that this cuts short
	req.IsolationLevel = 1 // read committed
	req.SessionEpoch = -1
	req.Topics = append(req.Topics, of)
	return req
}

// fateIn reads the answer. In the short range that it covers, an aborted transaction of this producer can only be p.
func (p *prepared) fateIn(part *kmsg.FetchResponseTopicPartition, w *written) fate {
	if part.LastStableOffset <= w.Last {
		return fateOpen
	}
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(part.RecordBatches); err != nil ||
		batch.ProducerID != p.ProducerID || batch.ProducerEpoch != p.Epoch || batch.FirstOffset > w.First {
		return fateUnknown
	}
	for i := range part.AbortedTransactions {
		if a := &part.AbortedTransactions[i]; a.ProducerID == p.ProducerID && a.FirstOffset <= w.First {
			return fateAborted
		}
	}
	return fateCommitted
}

// fateOutside tells a log that was deleted up to beyond the place from one that does not reach to it.
func (c cluster) fateOutside(ctx context.Context, w *written) (fate, error) {
	at := place{w.Topic, w.Partition}
	start, err := c.offsets(ctx, []place{at}, askEarliest, ReadUncommitted)
	if err != nil {
		return 0, err
	}
	if start[at].offset > w.First {
		return fateDeleted, nil
	}
	return fateUnknown, nil
}
