package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

var (
	// ErrUnreachable marks an error of the way to the cluster: no connection, no answer, or a handshake that fails.
	ErrUnreachable = errors.New("kafka: the cluster cannot be reached")
	// ErrLogin marks a login that the cluster refused.
	ErrLogin = errors.New("kafka: the cluster refused the login")
	// ErrTopicMissing marks a topic or partition that the cluster does not have.
	ErrTopicMissing = errors.New("kafka: no such topic or partition")
	// ErrTopicReplaced marks a topic that was deleted and created anew: the saved offsets belong to the old one.
	ErrTopicReplaced = errors.New("kafka: the topic was created anew under its name")
	// ErrOffsetOutOfRange marks an offset that the log does not hold.
	ErrOffsetOutOfRange = errors.New("kafka: the offset is not in the log")
	// ErrNotCommitted marks a consumer group without an offset where one is needed.
	ErrNotCommitted = errors.New("kafka: no committed offset")
	// ErrGroup marks an error of a consumer group: it may not be looked at or committed to.
	ErrGroup = errors.New("kafka: the consumer group refuses")
	// ErrTruncated marks a log that lost records which had been read.
	ErrTruncated = errors.New("kafka: the log was truncated")
)

// PartitionError is what went wrong with one partition. It unwraps to its cause and, where there is one, to a sentinel of
// this package.
type PartitionError struct {
	Topic     string
	Partition int32 // -1 when it concerns the whole topic
	Offset    int64 // the next offset to read; -1 when it concerns the whole topic
	Problem   string
	Remedy    string
	Err       error
}

func (e *PartitionError) Error() string {
	where := fmt.Sprintf("kafka: topic %q", e.Topic)
	if e.Partition >= 0 {
		where += fmt.Sprintf(" partition %d at offset %d", e.Partition, e.Offset)
	}
	return fmt.Sprintf("%s: %s: %s", where, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *PartitionError) Unwrap() error { return e.Err }

// OptionError says that what an option names cannot be used. It is a problem of this side; no network is involved.
type OptionError struct {
	Option string // as it is named in a job file: "tls.ca_file"
	Err    error
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s: %v", e.Option, e.Err) }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// transient reports an error that goes away by itself, so that a running reader waits rather than fails.
func transient(err error) bool {
	if errors.Is(err, ErrLogin) {
		return false
	}
	return errors.Is(err, ErrUnreachable) || kerr.IsRetriable(err)
}

// outOfRange says where the log begins and ends; both are negative when that is not known.
func outOfRange(s Split, start, end int64, cause error) error {
	problem := "the log does not hold that offset"
	switch {
	case start >= 0 && s.Offset < start:
		problem = fmt.Sprintf("the log begins at %d: records %d to %d were deleted, by retention or on request", start, s.Offset, start-1)
	case end >= 0 && s.Offset > end:
		problem = fmt.Sprintf("the log ends at %d, before that offset: it was truncated or is another log", end)
	}
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset, Problem: problem,
		Remedy: "set on_lost to earliest or latest to go on without them, or start the job without its saved state (--restore none); longer retention prevents it",
		Err:    errors.Join(ErrOffsetOutOfRange, cause),
	})
}

func truncated(s Split, loss *kgo.ErrDataLoss) error {
	what := fmt.Sprintf("records %d to %d, read before, are no longer in the log", loss.ResetTo, loss.ConsumedTo-1)
	if loss.ResetTo >= loss.ConsumedTo {
		what = "records before it, read before, are no longer in the log, and the brokers do not know from where on"
	}
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: loss.ConsumedTo,
		Problem: what + ": an out-of-date replica became leader (unclean election)",
		Remedy:  "decide what to do with what was already written of them, then set on_lost to earliest or latest to go on, or start the job without its saved state (--restore none)",
		Err:     errors.Join(ErrTruncated, loss),
	})
}

func replaced(s Split, now [16]byte) error {
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset,
		Problem: fmt.Sprintf("the topic was deleted and created anew: its id was %s and is %s", topicIDText(s.TopicID), topicIDText(now)),
		Remedy:  "set on_recreated to earliest to read the new topic from its start, or start the job without its saved state (--restore none)",
		Err:     ErrTopicReplaced,
	})
}

func topicDeleted(name string, cause error) error {
	return &PartitionError{
		Topic: name, Partition: -1, Offset: -1,
		Problem: "the cluster does not list it any more: it was deleted",
		Remedy:  "set on_deleted to wait to keep its positions and read the other topics, or start a job without it",
		Err:     errors.Join(ErrTopicMissing, cause),
	}
}

func topicMissing(s Split, cause error) error {
	return &PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset,
		Problem: "the cluster has no such topic or partition (any more)",
		Remedy:  "set on_deleted to wait to keep its position and read the others, or start a job without it",
		Err:     errors.Join(ErrTopicMissing, cause),
	}
}
