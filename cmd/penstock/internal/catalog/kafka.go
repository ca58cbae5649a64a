package catalog

import (
	"errors"
	"math"
	"strconv"
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
				ClientID: kafka.DefaultClientID, DialTimeout: kafka.DefaultDialTimeout,
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
		option.Text("client_id", &s.ClientID, "What brokers see in logs, metrics and quotas."),
		option.Duration("dial_timeout", &s.DialTimeout, 0, "Limit of one attempt to connect."),
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

const positionForms = "{timestamp: 2026-01-02T03:04:05Z}, {offsets: {topic: {0: 17}}}"

// position is earliest, latest, or a mapping with one entry. A stop has no earliest.
func position(name string, into *kafka.Position, shown, meaning string) *option.Option {
	words := []string{"earliest", "latest"}
	form := "earliest | latest | {timestamp: time} | {offsets: {topic: {partition: offset}}}"
	if name == "stop" {
		words = words[1:]
		form = "latest | {timestamp: time} | {offsets: {topic: {partition: offset}}}"
	}
	return option.Custom(name, form, shown, meaning, func(v option.Value) {
		if !v.IsMapping() {
			symbolic(v, name, words, into)
			return
		}
		count := 0
		for kind, entry := range v.Mapping("") {
			if count++; count > 1 {
				entry.ProblemAtName("a %s has one entry, and there is another before this one", name)
				continue
			}
			switch kind {
			case "timestamp":
				timestamp(entry, into)
			case "offsets":
				offsets(entry, into)
			default:
				entry.ProblemAtName("is not a %s (timestamp, offsets%s)", name, guess(kind, []string{"timestamp", "offsets"}))
			}
		}
		if count == 0 {
			v.Problem("is empty, want one of %s", positionForms)
		}
	})
}

func symbolic(v option.Value, name string, words []string, into *kafka.Position) {
	text, ok := v.Text(words[0] + ", or one of " + positionForms)
	if !ok {
		return
	}
	switch text {
	case "latest":
		*into = kafka.Latest()
	case words[0]:
		*into = kafka.Earliest()
	default:
		list := words[0]
		if len(words) > 1 {
			list += ", " + words[1]
		}
		v.Problem("%q is not a %s (%s, %s%s)", text, name, list, positionForms, guess(text, words))
	}
}

func guess(text string, words []string) string {
	if s := option.Suggest(text, words); s != "" {
		return "; did you mean " + strconv.Quote(s) + "?"
	}
	return ""
}

func timestamp(v option.Value, into *kafka.Position) {
	text, ok := v.Text("a time")
	if !ok {
		return
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			*into = kafka.Timestamp(t)
			return
		}
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 {
		*into = kafka.Timestamp(time.UnixMilli(ms))
		return
	}
	v.Problem("%q is not a time (for example 2026-01-02T03:04:05Z, 2026-01-02, or milliseconds since 1970)", text)
}

func offsets(v option.Value, into *kafka.Position) {
	const want = "offsets by topic and partition, for example {orders: {0: 17}}"
	all := map[string]map[int32]int64{}
	for topic, entry := range v.Mapping(want) {
		all[topic] = map[int32]int64{}
		for partition, at := range entry.Mapping("offsets by partition, for example {0: 17}") {
			p, err := strconv.ParseInt(partition, 10, 32)
			if err != nil || p < 0 {
				at.ProblemAtName("%q is not a partition number", partition)
				continue
			}
			text, ok := at.Text("an offset")
			if !ok {
				continue
			}
			o, err := strconv.ParseInt(text, 10, 64)
			if err != nil || o < 0 {
				at.Problem("%q is not an offset", text)
				continue
			}
			all[topic][int32(p)] = o
		}
	}
	if len(all) == 0 {
		v.Problem("names no topic, want %s", want)
	}
	*into = kafka.Offsets(all)
}

// kafkaBlame names the option that an error is most probably about.
func kafkaBlame(err error) string {
	switch {
	case errors.Is(err, kafka.ErrLogin):
		return "sasl"
	case errors.Is(err, kafka.ErrUnreachable):
		return "brokers"
	case errors.Is(err, kafka.ErrTopicMissing), errors.Is(err, kafka.ErrTopicReplaced):
		return "topics"
	case errors.Is(err, kafka.ErrOffsetOutOfRange):
		return "start"
	}
	return ""
}
