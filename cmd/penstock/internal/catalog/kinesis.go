package catalog

import (
	"errors"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/inspect"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kinesis"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/sdk"
)

func kinesisSource() Source {
	return Source{
		Name: "kinesis", Summary: "Reads a stream of Amazon Kinesis Data Streams, through resharding in order, by polling or with enhanced fan-out.", Guarantee: "exactly once with a transactional sink",
		Blame: kinesisBlame, Lineage: kinesisLineage,
		New: func() (option.Group, func() (Built, error)) {
			s := &kinesis.Source{
				Start: kinesis.TrimHorizon(), LatestBy: kinesis.ByClock, OnLost: kinesis.Fail, ScanTimeout: kinesis.DefaultScanTimeout,
				DiscoveryInterval: kinesis.DefaultDiscoveryInterval, PollInterval: kinesis.DefaultPollInterval, RequestTimeout: kinesis.DefaultRequestTimeout,
				MaxRecords: kinesis.DefaultMaxRecords, Concurrency: kinesis.DefaultConcurrency, InFlightBytes: kinesis.DefaultInFlightBytes,
			}
			g := option.Group{Options: kinesisOptions(s), Check: func(c *option.Checker) { c.Report(s.Validate()) }}
			return g, func() (Built, error) { return Built{Source: connector.Erase(s), Bounded: !s.Stop.IsZero()}, nil }
		},
	}
}

func kinesisOptions(s *kinesis.Source) []*option.Option {
	return []*option.Option{
		option.Text("stream", &s.Stream, "Name of the stream. Either this or stream_arn."),
		option.Text("stream_arn", &s.StreamARN, "ARN of the stream, also of one in another account."),
		option.Text("region", &s.Region, "AWS region. Absent, that of the ARN, of AWS_REGION, or of the profile."),
		option.Text("endpoint", &s.Endpoint, "Address of the service, for emulators and private endpoints: http://127.0.0.1:4567."),
		streamPosition("start", &s.Start, "trim_horizon", "Where a new job begins. A job that goes on from a checkpoint ignores it."),
		streamPosition("stop", &s.Stop, "", "Where the job ends: it reads what arrived before. Absent, it never ends."),
		option.Words("latest_by", &s.LatestBy, "How a start at latest is found: by the service's clock, which may read again what arrived up to two seconds before, or by a scan to the last record of each shard.",
			kinesis.ByClock, kinesis.ByScan),
		option.Duration("scan_timeout", &s.ScanTimeout, 0, "Limit of latest_by: scan, for all shards together."),
		option.Words("on_lost", &s.OnLost, "What to do when records expired before they were read: end the job, or go on with the oldest there is. Counted and logged.",
			kinesis.Fail, kinesis.Continue),
		option.Duration("discovery_interval", &s.DiscoveryInterval, 0, "Time between looks at the stream's shards."),
		kinesisConsumer(&s.Consumer),
		option.Flag("aggregated", &s.Aggregated, "Take records of the Kinesis Producer Library apart. What is no aggregate is passed on as it is."),
		option.Flag("filter_hash_keys", &s.FilterHashKeys, "Drop aggregates that hold a record of another shard's hash keys, as the Kinesis Client Library does. Counted."),
		kinesisCredentials(&s.Credentials),
		option.Duration("poll_interval", &s.PollInterval, 0, "Time between polls of a shard that has nothing new."),
		option.Duration("request_timeout", &s.RequestTimeout, 0, "Limit of one request."),
		option.Int("max_records", &s.MaxRecords, 1, kinesis.DefaultMaxRecords, "What one poll brings of a shard at most."),
		option.Int("concurrency", &s.Concurrency, 1, 256, "Requests of one reader that run at a time."),
		option.Size("in_flight_bytes", &s.InFlightBytes, 0, 1<<40, "What all readers of the stream in this process have fetched and not emitted, at most; each reader may have one page beyond it."),
		option.Number("records_per_second", &s.RecordsPerSecond, 0, "Limit of each reader; 0 is no limit."),
	}
}

// kinesisConsumer is a section of its own, because its presence alone changes how the stream is read.
func kinesisConsumer(into *string) *option.Option {
	return option.Section("efo", "Enhanced fan-out: the service pushes records, 2 MiB a second for each shard and this consumer alone. It costs extra. Absent, the shards are polled.", option.Group{
		Options: []*option.Option{
			option.Text("consumer", into, "Name of the consumer, which is registered when it does not exist, or the ARN of one that does.").Require(),
		},
	})
}

func kinesisCredentials(c *kinesis.Credentials) *option.Option {
	return option.Section("credentials", "As whom to come. Absent, the default chain of the AWS SDK: environment, shared files, container, instance.", option.Group{
		Options: []*option.Option{
			option.Text("profile", &c.Profile, "Profile of the shared configuration files."),
			option.Text("access_key_id", &c.AccessKeyID, "Access key, in place of the chain. With secret_access_key."),
			option.Text("secret_access_key", &c.SecretAccessKey, "Secret of access_key_id.").Hide(),
			option.Text("session_token", &c.SessionToken, "Session token of temporary credentials.").Hide(),
			option.Text("role_arn", &c.RoleARN, "Role to assume with the above, and again before it expires."),
			option.Text("external_id", &c.ExternalID, "What the role's trust policy may ask for."),
			option.Text("session_name", &c.SessionName, "How the session is called in the service's logs. Absent, penstock."),
		},
	})
}

// kinesisBlame names the option that an error is most probably about.
func kinesisBlame(err error) string {
	if e, ok := errors.AsType[*kinesis.ConfigError](err); ok {
		return e.Option
	}
	if e, ok := errors.AsType[*kinesis.ServiceError](err); ok {
		return e.Option
	}
	switch {
	case errors.Is(err, kinesis.ErrLost):
		return "on_lost"
	case errors.Is(err, kinesis.ErrPosition):
		return "start"
	case errors.Is(err, kinesis.ErrConsumer):
		return "efo"
	case errors.Is(err, kinesis.ErrStreamMissing), errors.Is(err, kinesis.ErrRecreated):
		return "stream"
	}
	return ""
}

// kinesisLineage shows where each shard stood, with the ends that the same checkpoint made durable.
func kinesisLineage(state sdk.VersionedBytes, finished []sdk.SplitID) ([]inspect.Descent, error) {
	top, err := lineage.Decode(state, lineage.Config{})
	if err != nil {
		return nil, err
	}
	for _, id := range finished {
		top.Finished(string(id), lineage.AtEnd, nil)
	}
	nodes := top.Nodes()
	rows := make([]inspect.Descent, len(nodes))
	for i, n := range nodes {
		rows[i] = inspect.Descent{Split: n.ID, Parents: n.Parents, State: n.State.String(), Notes: []string{}}
		for _, note := range []struct {
			is   bool
			text string
		}{
			{n.Outside, "before the start"},
			{n.Skipped, "ended before the start"},
			{n.Lost, "lost"},
			{n.Gone, "not listed any more, and not read to its end"},
			{n.Closed && n.State != lineage.Completed && n.State != lineage.Draining, "closed"},
			{!n.Held && n.Position.Concrete(), "from " + n.Position.String()},
		} {
			if note.is {
				rows[i].Notes = append(rows[i].Notes, note.text)
			}
		}
	}
	return rows, nil
}
