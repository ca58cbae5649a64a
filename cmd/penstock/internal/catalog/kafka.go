package catalog

import (
	"errors"
	"math"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/connector"
)

func kafkaSource() Source {
	return Source{
		Name: "kafka", Summary: "Reads topics of Apache Kafka and what speaks its protocol, without a consumer group.", Guarantee: "exactly once with a transactional sink",
		Blame: kafkaBlame,
		New: func() (option.Group, func() (Built, error)) {
			s := &kafka.Source{
				Start: kafka.Earliest(), DiscoveryInterval: kafka.DefaultDiscoveryInterval,
				OnLost: kafka.Fail, OnRecreated: kafka.Fail, OnDeleted: kafka.Fail,
				ClientID: kafka.DefaultClientID, DialTimeout: kafka.DefaultDialTimeout, IdleTimeout: kafka.DefaultIdleTimeout,
				FetchMaxWait: kafka.DefaultFetchMaxWait, FetchMaxPartitionBytes: kafka.DefaultFetchMaxPartitionBytes, FetchMaxBytes: kafka.DefaultFetchMaxBytes,
				MaxDecompressBatchBytes: kafka.DefaultMaxDecompressBatchBytes, BrokerMaxReadBytes: kafka.DefaultBrokerMaxReadBytes,
			}
			g := option.Group{Options: kafkaOptions(s), Check: func(c *option.Checker) { c.Report(s.Validate()) }}
			return g, func() (Built, error) { return Built{Source: connector.Erase(s), Bounded: !s.Stop.IsZero()}, nil }
		},
	}
}

func kafkaOptions(s *kafka.Source) []*option.Option {
	const anySize = math.MaxInt32
	return []*option.Option{
		option.Texts("brokers", &s.Brokers, "Addresses to find the cluster by, each host:port; one that answers is enough.").Require(),
		option.Texts("topics", &s.Topics, "Topics to read. Either this or pattern."),
		option.Text("pattern", &s.Pattern, "Regular expression that whole topic names must match; topics that match later are read from their start. Either this or topics."),
		position("start", &s.Start, "earliest", "Where a new job begins. A job that goes on from a checkpoint ignores it."),
		position("stop", &s.Stop, "", "Where the job ends: it reads the partitions that exist at its start up to there. Absent, it never ends."),
		option.Choice("isolation", &s.Isolation, "Whether records of aborted and open transactions are left out.",
			option.Named[kafka.Isolation]{Name: "read_committed", Value: kafka.ReadCommitted},
			option.Named[kafka.Isolation]{Name: "read_uncommitted", Value: kafka.ReadUncommitted}),
		discoveryInterval(&s.DiscoveryInterval),
		option.Words("on_lost", &s.OnLost, "What to do when the log does not hold a position any more (retention, truncation): end the job, go on with the earliest record that was not read, or go on at the end. Counted and logged with the range.",
			kafka.Fail, kafka.ContinueEarliest, kafka.ContinueLatest),
		option.Words("on_recreated", &s.OnRecreated, "What to do when a topic was deleted and created anew under its name: end the job, or read the new one from its start.",
			kafka.Fail, kafka.ContinueEarliest),
		option.Words("on_deleted", &s.OnDeleted, "What to do when the cluster lists a topic no more: end the job, or keep the position, read the others and go on when it is back.",
			kafka.Fail, kafka.Wait),
		option.Text("commit_group", &s.CommitGroup, "Consumer group that the positions of completed checkpoints are committed to, for tools that show lag. A group of its own, without members. It is never read from."),
		kafkaTLS(&s.TLS),
		kafkaSASL(&s.SASL),
		option.Text("client_id", &s.ClientID, "What brokers see in logs, metrics and quotas."),
		option.Text("rack", &s.Rack, "Where this process runs, as brokers name it in broker.rack: they may then send records from a replica there."),
		option.Duration("dial_timeout", &s.DialTimeout, 0, "Limit of one attempt to connect."),
		option.Duration("idle_timeout", &s.IdleTimeout, 0, "When a connection that is not used is closed; less than what load balancers in between allow."),
		option.Number("records_per_second", &s.RecordsPerSecond, 0, "Limit of each reader; 0 is no limit."),
		option.Duration("fetch_max_wait", &s.FetchMaxWait, 0, "How long a broker may hold a fetch when it has nothing new."),
		option.Size("fetch_max_partition_bytes", &s.FetchMaxPartitionBytes, 0, anySize, "What one fetch brings of one partition at most, as stored. A larger batch is still read."),
		option.Size("fetch_max_bytes", &s.FetchMaxBytes, 0, anySize, "What one fetch brings from one broker at most."),
		option.Size("max_decompress_batch_bytes", &s.MaxDecompressBatchBytes, 0, anySize, "Limit of one batch after decompression; a larger one is an error."),
		option.Size("broker_max_read_bytes", &s.BrokerMaxReadBytes, 0, anySize, "Limit of any response. More than fetch_max_bytes and the largest batch."),
	}
}

// discoveryInterval is a duration where 0 has the meaning that the source gives to another value.
func discoveryInterval(into *time.Duration) *option.Option {
	const form = "duration"
	return option.Custom("discovery_interval", form, option.FormatDuration(*into), "Time between looks for new partitions and topics; 0 is off.", func(v option.Value) {
		text, ok := v.Text(form)
		if !ok {
			return
		}
		if text == "0" || text == "off" {
			*into = kafka.DiscoveryOff
			return
		}
		d, err := option.ParseDuration(text)
		switch {
		case err != nil:
			v.Problem("%q %v", text, err)
		case d == 0:
			*into = kafka.DiscoveryOff
		case d < 0:
			v.Problem("%q is negative (0 is off)", text)
		default:
			*into = d
		}
	})
}

// kafkaBlame names the option that an error is most probably about.
func kafkaBlame(err error) string {
	if e, ok := errors.AsType[*kafka.OptionError](err); ok {
		return e.Option
	}
	if e, ok := errors.AsType[*kafka.ConnectionError](err); ok {
		return e.Option
	}
	switch {
	case errors.Is(err, kafka.ErrLogin):
		return "sasl"
	case errors.Is(err, kafka.ErrUnreachable):
		return "brokers"
	case errors.Is(err, kafka.ErrTopicMissing):
		return "topics"
	case errors.Is(err, kafka.ErrTopicReplaced):
		return "on_recreated"
	case errors.Is(err, kafka.ErrNotCommitted):
		return "start"
	case errors.Is(err, kafka.ErrGroup):
		return "commit_group"
	case errors.Is(err, kafka.ErrOffsetOutOfRange), errors.Is(err, kafka.ErrTruncated):
		return "on_lost"
	}
	return ""
}
