package kafkatest

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SimulateTruncation makes the cluster answer, when a client asks where the records of an epoch end, that those of the
// present and all earlier epochs end at end: what a client learns after an out-of-date replica became leader. The records stay.
func (b *Broker) SimulateTruncation(topic string, number int32, end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.truncated[partition{topic, number}] = end
}

// answerEpochs answers OffsetForLeaderEpoch in place of kfake, which calls the epoch of a reader unknown after a leader
// moved and before the new one wrote something, so that clients see a loss that did not happen.
func (b *Broker) answerEpochs() {
	b.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		req, ok := r.(*kmsg.OffsetForLeaderEpochRequest)
		if !ok {
			return nil, nil, false
		}
		resp, ok := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		if !ok {
			return nil, nil, false
		}
		for i := range req.Topics {
			topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
			topic.Topic = req.Topics[i].Topic
			for j := range req.Topics[i].Partitions {
				answer, known := b.epochEnd(topic.Topic, &req.Topics[i].Partitions[j])
				if !known {
					return nil, nil, false
				}
				topic.Partitions = append(topic.Partitions, answer)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
}

// epochEnd answers for one partition. It says that the records of any epoch end where the log ends: right for the newest
// epoch, and for older ones too generous to matter to a reader, since kfake never truncates.
func (b *Broker) epochEnd(topic string, req *kmsg.OffsetForLeaderEpochRequestTopicPartition) (kmsg.OffsetForLeaderEpochResponseTopicPartition, bool) {
	answer := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	answer.Partition = req.Partition
	info := b.cluster.PartitionInfo(topic, req.Partition)
	if info == nil || req.LeaderEpoch > info.Epoch {
		return answer, false
	}
	switch {
	case req.CurrentLeaderEpoch >= 0 && req.CurrentLeaderEpoch < info.Epoch:
		answer.ErrorCode = kerr.FencedLeaderEpoch.Code
	case info.Leader != b.cluster.CurrentNode():
		answer.ErrorCode = kerr.NotLeaderForPartition.Code
	default:
		answer.LeaderEpoch, answer.EndOffset = req.LeaderEpoch, info.HighWatermark
		b.mu.Lock()
		if end, cut := b.mu.truncated[partition{topic, req.Partition}]; cut {
			answer.EndOffset = min(answer.EndOffset, end)
		}
		b.mu.Unlock()
	}
	return answer, true
}
