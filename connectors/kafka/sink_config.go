package kafka

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Defaults of [Sink].
const (
	DefaultLinger             = 5 * time.Millisecond
	DefaultBatchMaxBytes      = 1_000_000
	DefaultMaxBufferedRecords = 50_000
	DefaultMaxBufferedBytes   = 64 << 20
	DefaultTransactionTimeout = 15 * time.Minute
	DefaultIDPrefix           = "penstock"
)

// LingerNone is the [Sink.Linger] that sends at once whatever there is.
const LingerNone = time.Duration(-1)

// Validate reports everything that is wrong with the configuration, each problem with the field it is about. It does no I/O.
func (s *Sink) Validate() error {
	d := s.withDefaults()
	problems := d.validateTopic()
	if len(d.Brokers) == 0 {
		problems = append(problems, errors.New("brokers: none given: name at least one, as host:port"))
	}
	for _, address := range d.Brokers {
		if err := checkAddress(address); err != nil {
			problems = append(problems, fmt.Errorf("brokers: %q: %w", address, err))
		}
	}
	problems = append(problems,
		oneOf("delivery", d.Delivery, ExactlyOnce, AtLeastOnce),
		oneOf("partitioning", d.Partitioning, PartitionByKey, PartitionKeep, PartitionRoundRobin),
		oneOf("compression", d.Compression, NoCompression, Gzip, Snappy, LZ4, Zstd),
		oneOf("on_lost", d.OnLost, LostFail, LostContinue),
		oneOf("on_older", d.OnOlder, OlderFail, OlderContinue),
		within("linger", d.Linger, LingerNone, time.Minute),
		within("transaction_timeout", d.TransactionTimeout, time.Second, 24*time.Hour),
		within("dial_timeout", d.DialTimeout, 10*time.Millisecond, 5*time.Minute),
		within("idle_timeout", d.IdleTimeout, time.Second, time.Hour),
		within("batch_max_bytes", d.BatchMaxBytes, 1<<10, 1<<30),
		within("max_buffered_records", d.MaxBufferedRecords, 1, 1<<24),
		within("max_buffered_bytes", d.MaxBufferedBytes, d.BatchMaxBytes, 1<<40),
	)
	problems = append(problems, validateAccess(d.TLS, d.SASL)...)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("kafka sink: %w", err)
	}
	return nil
}

// intervalsPerTransaction is how many checkpoint intervals fit into a transaction's time at least: one is written during one interval, and
// what is left is for the checkpoint itself and for a restart before its commit.
const intervalsPerTransaction = 2

// CheckInterval reports a checkpoint interval for which [Sink.TransactionTimeout] is too short: transactions would expire while they are
// written, and the job would never get on.
func (s *Sink) CheckInterval(interval time.Duration) error {
	d := s.withDefaults()
	if d.Delivery != ExactlyOnce || d.TransactionTimeout >= intervalsPerTransaction*interval {
		return nil
	}
	return fmt.Errorf("transaction_timeout: %v is too short for checkpoints every %v: a transaction stays open from one checkpoint to the next and until that is stored, and the cluster aborts it then: use at least %v, or checkpoint more often",
		d.TransactionTimeout, interval, intervalsPerTransaction*interval)
}

func (s *Sink) validateTopic() (problems []error) {
	switch {
	case s.Topic == "" && !s.KeepTopic:
		problems = append(problems, errors.New("topic: none given: name the topic to write to, or set keep_topic"))
	case s.Topic != "" && s.KeepTopic:
		problems = append(problems, errors.New("keep_topic: set beside topic: use one of them"))
	case s.Topic != "" && !legalTopicName(s.Topic):
		problems = append(problems, fmt.Errorf("topic: %q is no topic name: 1 to %d letters, digits, dots, dashes and underscores", s.Topic, maxTopicName))
	}
	return problems
}

func oneOf[T ~string](field string, value T, known ...T) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s: %q: use one of %v", field, value, known)
}

func within[T int | time.Duration](field string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v: from %v to %v", field, value, low, high)
	}
	return nil
}

// withDefaults returns a copy with every zero value replaced by its default.
func (s *Sink) withDefaults() Sink {
	d := *s
	orDefault(&d.Delivery, ExactlyOnce)
	orDefault(&d.Partitioning, PartitionByKey)
	orDefault(&d.Compression, NoCompression)
	orDefault(&d.Linger, DefaultLinger)
	orDefault(&d.BatchMaxBytes, DefaultBatchMaxBytes)
	orDefault(&d.MaxBufferedRecords, DefaultMaxBufferedRecords)
	orDefault(&d.MaxBufferedBytes, DefaultMaxBufferedBytes)
	orDefault(&d.TransactionTimeout, DefaultTransactionTimeout)
	orDefault(&d.IDPrefix, DefaultIDPrefix)
	orDefault(&d.OnLost, LostFail)
	orDefault(&d.OnOlder, OlderFail)
	orDefault(&d.ClientID, DefaultClientID)
	orDefault(&d.DialTimeout, DefaultDialTimeout)
	orDefault(&d.IdleTimeout, DefaultIdleTimeout)
	return d
}
