package catalog

import (
	"errors"
	"math"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

func kafkaSink() Sink {
	return Sink{
		Name: "kafka", Summary: "Writes records to topics of Apache Kafka, in transactions bound to checkpoints.", Guarantee: "exactly once, or at least once with delivery: at_least_once",
		Blame: kafkaSinkBlame,
		New: func() (option.Group, func() (sdk.Sink, error)) {
			s := &kafka.Sink{
				Delivery: kafka.ExactlyOnce, Partitioning: kafka.PartitionByKey, Compression: kafka.NoCompression, OnLost: kafka.LostFail, OnOlder: kafka.OlderFail,
				Linger: kafka.DefaultLinger, BatchMaxBytes: kafka.DefaultBatchMaxBytes,
				MaxBufferedRecords: kafka.DefaultMaxBufferedRecords, MaxBufferedBytes: kafka.DefaultMaxBufferedBytes,
				TransactionTimeout: kafka.DefaultTransactionTimeout, IDPrefix: kafka.DefaultIDPrefix,
				ClientID: kafka.DefaultClientID, DialTimeout: kafka.DefaultDialTimeout, IdleTimeout: kafka.DefaultIdleTimeout,
			}
			g := option.Group{Options: kafkaSinkOptions(s), Check: func(c *option.Checker) { c.Report(s.Validate()) }}
			return g, func() (sdk.Sink, error) { return s, nil }
		},
	}
}

func kafkaSinkOptions(s *kafka.Sink) []*option.Option {
	const anySize = math.MaxInt32
	return []*option.Option{
		option.Texts("brokers", &s.Brokers, "Addresses to find the cluster by, each host:port; one that answers is enough.").Require(),
		option.Text("topic", &s.Topic, "Topic that all records go to. Either this or keep_topic. The sink never creates a topic."),
		option.Flag("keep_topic", &s.KeepTopic, "Write each record to the topic of the name that it came from, in another cluster."),
		option.Words("delivery", &s.Delivery, "What is promised: transactions that are committed with their checkpoint, or acknowledged records only.", kafka.ExactlyOnce, kafka.AtLeastOnce),
		option.Words("partitioning", &s.Partitioning, "Which partition a record goes to: by its key, as the Java client, or that of the number it came from, or one after the other.",
			kafka.PartitionByKey, kafka.PartitionKeep, kafka.PartitionRoundRobin),
		option.Words("compression", &s.Compression, "How batches are compressed.", kafka.NoCompression, kafka.Gzip, kafka.Snappy, kafka.LZ4, kafka.Zstd),
		linger(&s.Linger),
		option.Size("batch_max_bytes", &s.BatchMaxBytes, 0, anySize, "Limit of one batch before compression, and so of a record. The topic's max.message.bytes must allow it."),
		option.Int("max_buffered_records", &s.MaxBufferedRecords, 0, anySize, "Records that one writer holds without acknowledgement at most; then it waits."),
		option.Size("max_buffered_bytes", &s.MaxBufferedBytes, 0, math.MaxInt, "Bytes that one writer holds without acknowledgement at most; then it waits."),
		option.Duration("transaction_timeout", &s.TransactionTimeout, 0, "When the cluster aborts a transaction by itself, also a prepared one. Longer than checkpoint interval and downtime together; at most transaction.max.timeout.ms of the brokers."),
		option.Text("transactional_id_prefix", &s.IDPrefix, "Begins every transactional id, before the job's name. Must not change while there is saved state."),
		option.Words("on_lost", &s.OnLost, "What to do when records of a completed checkpoint are lost because the cluster aborted their transaction.", kafka.LostFail, kafka.LostContinue),
		option.Words("on_older", &s.OnOlder, "What to do when a job is restored from a checkpoint after which it has committed more, so that records will be there twice.", kafka.OlderFail, kafka.OlderContinue),
		option.Text("client_id", &s.ClientID, "What brokers see in logs, metrics and quotas."),
		option.Duration("dial_timeout", &s.DialTimeout, 0, "Limit of one attempt to connect."),
		option.Duration("idle_timeout", &s.IdleTimeout, 0, "When a connection that is not used is closed."),
		kafkaTLS(&s.TLS),
		kafkaSASL(&s.SASL),
	}
}

// linger is a duration where 0 has the meaning that the sink gives to another value.
func linger(into *time.Duration) *option.Option {
	const form = "duration"
	return option.Custom("linger", form, option.FormatDuration(*into), "How long a batch waits for more records; 0 is not at all. A checkpoint does not wait.", func(v option.Value) {
		text, ok := v.Text(form)
		if !ok {
			return
		}
		d, err := option.ParseDuration(text)
		switch {
		case err != nil:
			v.Problem("%q %v", text, err)
		case d < 0:
			v.Problem("%q is negative (0 is off)", text)
		case d == 0:
			*into = kafka.LingerNone
		default:
			*into = d
		}
	})
}

// kafkaSinkBlame names the option that an error is most probably about.
func kafkaSinkBlame(err error) string {
	if e, ok := errors.AsType[*kafka.OptionError](err); ok {
		return e.Option
	}
	if e, ok := errors.AsType[*kafka.ConnectionError](err); ok {
		return e.Option
	}
	switch {
	case errors.Is(err, kafka.ErrTransactionTimeout), errors.Is(err, kafka.ErrLost), errors.Is(err, kafka.ErrFateUnknown):
		return "transaction_timeout"
	case errors.Is(err, kafka.ErrOlder):
		return "on_older"
	case errors.Is(err, kafka.ErrFenced), errors.Is(err, kafka.ErrPrepared):
		return "transactional_id_prefix"
	case errors.Is(err, kafka.ErrTopicMissing), errors.Is(err, kafka.ErrRefused):
		return "topic"
	case errors.Is(err, kafka.ErrLogin):
		return "sasl"
	}
	return ""
}
