package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// topicError explains why the cluster does not describe a topic.
func topicError(t *topic) error {
	e := &PartitionError{Topic: t.name, Partition: -1, Offset: -1, Err: t.err}
	switch {
	case errors.Is(t.err, kerr.UnknownTopicOrPartition), errors.Is(t.err, kerr.UnknownTopicID):
		e.Err = errors.Join(ErrTopicMissing, t.err)
		e.Problem = "the cluster has no such topic"
		e.Remedy = "create it, or correct topics"
	case errors.Is(t.err, kerr.TopicAuthorizationFailed):
		e.Err = errors.Join(ErrLogin, t.err)
		e.Problem = "this login may not read it"
		e.Remedy = "grant it READ and DESCRIBE on the topic"
	default:
		e.Problem = fmt.Sprintf("the cluster does not describe it: %v", t.err)
		e.Remedy = "see the broker's log"
	}
	return e
}
