package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

var (
	// ErrRefused marks a record that the cluster does not take.
	ErrRefused = errors.New("kafka: a record was refused")
	// ErrTransactionTimeout marks a [Sink.TransactionTimeout] that the cluster does not allow.
	ErrTransactionTimeout = errors.New("kafka: transaction_timeout is not allowed")
	// ErrFenced marks a transaction that another writer of the same transactional id, or the cluster, ended while it was written.
	// Nothing of it was promised: the job goes on from its last checkpoint.
	ErrFenced = errors.New("kafka: the transaction was ended by somebody else")
	// ErrLost marks records of a completed checkpoint whose transaction was aborted.
	ErrLost = errors.New("kafka: records of a completed checkpoint are lost")
	// ErrFateUnknown marks a transaction of a completed checkpoint of which nobody can tell any more whether it was committed.
	ErrFateUnknown = errors.New("kafka: it is not known whether records of a completed checkpoint were committed")
	// ErrOlder marks a restore from a checkpoint after which the job has committed more.
	ErrOlder = errors.New("kafka: the job has already committed more than the restored checkpoint holds")
	// ErrTooManyPrepared marks checkpoints that are prepared, one after the other, and never complete.
	ErrTooManyPrepared = errors.New("kafka: too many prepared transactions")
	// ErrPrepared marks prepared bytes that this build cannot read.
	ErrPrepared = errors.New("kafka: unreadable prepared transaction")
)

// RecordError is a record that could not be written. It unwraps to its cause and, where there is one, to a sentinel of this package.
type RecordError struct {
	Topic     string
	Partition int32 // -1 when it concerns the whole topic, or is not known
	Problem   string
	Remedy    string
	Err       error
}

func (e *RecordError) Error() string {
	where := fmt.Sprintf("kafka sink: topic %q", e.Topic)
	if e.Partition >= 0 {
		where += fmt.Sprintf(" partition %d", e.Partition)
	}
	return fmt.Sprintf("%s: %s: %s", where, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// refused explains why a record, or a whole topic, cannot be written. What no restart cures is fatal.
func refused(r *kgo.Record, err error) error {
	e := &RecordError{Topic: r.Topic, Partition: r.Partition, Err: errors.Join(ErrRefused, err)}
	switch {
	case r.Partition < -1: // see keptPartition
		e.Partition = ^r.Partition
		e.Problem = "a record comes from a partition of that number, and this topic has fewer"
		e.Remedy = "give the topic as many partitions, or use partitioning: key"
	case errors.Is(err, kerr.MessageTooLarge):
		e.Problem = fmt.Sprintf("a record with %d bytes of key, value and headers is too large", recordBytes(r))
		e.Remedy = "raise max.message.bytes of the topic and batch_max_bytes (and max_buffered_bytes) of the sink, or leave such records out at the source"
		return sdk.Fatal(e)
	case errors.Is(err, kerr.InvalidTimestamp):
		e.Problem = fmt.Sprintf("the broker does not take a record of time %s", r.Timestamp.UTC().Format(time.RFC3339Nano))
		e.Remedy = "set message.timestamp.after.max.ms or message.timestamp.before.max.ms of the topic wider, or message.timestamp.type=LogAppendTime"
		return sdk.Fatal(e)
	case errors.Is(err, kerr.InvalidRecord):
		e.Problem = "the broker calls a record invalid"
		e.Remedy = "a compacted topic takes no record without key; see the broker's log for other reasons"
		return sdk.Fatal(e)
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		e.Err = errors.Join(ErrTopicMissing, err)
		e.Partition = -1
		e.Problem = "the cluster has no such topic"
		e.Remedy = "create it, or correct topic; this sink never creates one"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		e.Err = errors.Join(ErrLogin, err)
		e.Partition = -1
		e.Problem = "this login may not write it"
		e.Remedy = "grant it WRITE and DESCRIBE on the topic"
	case kerr.IsRetriable(err):
		e.Problem = err.Error()
		e.Remedy = "the job goes on from its last checkpoint; see the log of the partition's leader if it stays"
	default:
		e.Problem = err.Error()
		e.Remedy = "see the log of the partition's leader"
	}
	return e
}

// unauthorized explains a refusal that concerns no topic, or returns nil for another error.
func unauthorized(id string, err error) error {
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Errorf("%w: this login may not use the transactional id %q: grant it WRITE and DESCRIBE on transactional ids with that prefix (transactional_id_prefix): %w", ErrLogin, id, err)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Errorf("%w: this login may not write idempotently: grant it WRITE on a topic, or IDEMPOTENT_WRITE on the cluster of older brokers: %w", ErrLogin, err)
	}
	return nil
}

func timeoutError(wanted, allowed time.Duration) error {
	limit := "its " + maxTimeoutConfig
	if allowed > 0 {
		limit = fmt.Sprintf("%s = %d (%v)", maxTimeoutConfig, allowed.Milliseconds(), allowed)
	}
	return fmt.Errorf("%w: %v is more than the cluster allows: lower transaction_timeout to at most %s, or raise that on the brokers", ErrTransactionTimeout, wanted, limit)
}

// ended reports an error by which the cluster says that the transaction is not this writer's (any more).
func ended(err error) bool {
	return errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidTxnState) ||
		errors.Is(err, kerr.InvalidProducerIDMapping) || errors.Is(err, kerr.TransactionAbortable) || errors.Is(err, kerr.UnknownProducerID)
}

// fencedError explains a transaction that ended under the hands of its writer.
func fencedError(id string, open, timeout time.Duration, err error) error {
	reason := "another writer took its transactional id: does a job of the same name write to this cluster? (transactional_id_prefix keeps them apart)"
	if open >= timeout {
		reason = fmt.Sprintf("it was open for %v, and the cluster aborts it after transaction_timeout = %v: take checkpoints more often, or raise it", open.Round(time.Millisecond), timeout)
	}
	return fmt.Errorf("%w: transactional id %q: %s: %w", ErrFenced, id, reason, err)
}

// TransactionError says what became of a transaction that a completed checkpoint holds. It unwraps to [ErrLost] or [ErrFateUnknown].
type TransactionError struct {
	TransactionalID string
	Checkpoint      sdk.CheckpointID
	Task            int
	Records         int64 // that it held
	Began           time.Time
	Timeout         time.Duration
	Problem         string
	Err             error
}

func (e *TransactionError) Error() string {
	return fmt.Sprintf("%v: %d records of checkpoint %d, task %d (transactional id %q, begun %s, transaction_timeout %v): %s. "+
		"Either restore the checkpoint before it: its records come again, also those that other tasks did commit; or go on without them, with on_lost: continue",
		e.Err, e.Records, e.Checkpoint, e.Task, e.TransactionalID, e.Began.UTC().Format(time.RFC3339), e.Timeout, e.Problem)
}

// Unwrap returns the sentinel.
func (e *TransactionError) Unwrap() error { return e.Err }
