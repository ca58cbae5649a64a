package kinesis

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// Defaults of [Source].
const (
	DefaultDiscoveryInterval = 10 * time.Second
	DefaultPollInterval      = time.Second
	DefaultRequestTimeout    = 30 * time.Second
	DefaultScanTimeout       = 10 * time.Minute
	DefaultMaxRecords        = 10_000
	DefaultConcurrency       = 16
	DefaultInFlightBytes     = 128 << 20
)

// Source is a configured Kinesis source. Fill it in, then do not change it: readers and enumerators share it. A field left
// at its zero value has the default that its comment names.
type Source struct {
	// Stream is the name of the stream to read. Exactly one of Stream and StreamARN is given.
	Stream string
	// StreamARN names a stream, also one of another account.
	StreamARN string
	// Region is the AWS region; empty takes that of the ARN, the environment, or the profile.
	Region string
	// Endpoint replaces the address of the service: http://127.0.0.1:4567. For emulators and private endpoints.
	Endpoint string
	// Credentials say as whom to come; the zero value is the SDK's default chain.
	Credentials Credentials

	// Start is where a new job begins; the zero value is [TrimHorizon]. With saved state it is ignored: the job goes on where it was.
	Start Position
	// Stop makes the job bounded: it reads what arrived before, and ends. The zero value means that it never ends. It must not change while there is saved
	// state.
	Stop Position
	// LatestBy is how a start at [Latest] is found; default [ByClock].
	LatestBy LatestBy
	// ScanTimeout bounds finding the latest position of all shards [ByScan]; default 10 minutes.
	ScanTimeout time.Duration
	// OnLost is what happens when records expired before they were read; default [Fail].
	OnLost Policy

	// DiscoveryInterval is the time between looks at the stream's shards; default 10 s.
	DiscoveryInterval time.Duration
	// Consumer is the name of an enhanced fan-out consumer, which is registered when it does not exist; or the ARN of one that
	// does. Empty polls.
	Consumer string
	// Aggregated takes records of the Kinesis Producer Library apart. A record that is no aggregate is passed on as it is.
	Aggregated bool
	// FilterHashKeys drops aggregates that hold a record whose hash key is not one of the shard, as the Kinesis Client Library does: the producer
	// library sends those again. Producers that aggregate in another way lose records by it.
	FilterHashKeys bool

	// PollInterval is the time between two polls of a shard that has nothing new; default 1 s, at least 200 ms. A shard that has is polled as
	// often as the service allows.
	PollInterval time.Duration
	// RequestTimeout bounds one request; default 30 s.
	RequestTimeout time.Duration
	// MaxRecords bounds the records that one poll brings of a shard; default and at most 10,000.
	MaxRecords int
	// Concurrency is how many requests of one reader run at a time; default 16.
	Concurrency int
	// InFlightBytes bounds what all readers of this stream in the process have fetched and not emitted; default 128 MiB. Each reader may
	// have one page beyond it, so that none starves.
	InFlightBytes int64
	// RecordsPerSecond limits each reader; 0 is no limit.
	RecordsPerSecond float64

	// Client adds options to the AWS clients of this source, after its own. Options that change retries break what this package promises.
	Client []func(*kinesis.Options)

	pageSize int32 // shards of one page of a list; 0 is what the service likes
}

var (
	streamPattern   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	arnPattern      = regexp.MustCompile(`^arn:[a-z0-9-]+:kinesis:[a-z0-9-]+:[0-9]{12}:stream/([A-Za-z0-9_.-]{1,128})$`)
	consumerPattern = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]{1,128}|arn:[a-z0-9-]+:kinesis:[a-z0-9-]+:[0-9]{12}:stream/[A-Za-z0-9_.-]+/consumer/[A-Za-z0-9_.-]+:[0-9]+)$`)
)

// Validate reports everything that is wrong with the configuration, each problem with the field it is about. It does no I/O.
func (s *Source) Validate() error {
	d := s.withDefaults()
	problems := d.validateStream()
	problems = append(problems, d.Start.validate("start")...)
	problems = append(problems, d.Stop.validate("stop")...)
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problem(d.LatestBy != ByClock && d.LatestBy != ByScan, "latest_by: %q: use clock or scan", d.LatestBy)
	problem(d.OnLost != Fail && d.OnLost != Continue, "on_lost: %q: use fail or continue", d.OnLost)
	problem(d.Consumer != "" && !consumerPattern.MatchString(d.Consumer), "consumer: %q is neither a name (letters, digits, dots, dashes, underscores) nor the ARN of a consumer", d.Consumer)
	problem(d.FilterHashKeys && !d.Aggregated, "filter_hash_keys: only aggregates are filtered: set aggregated too, or leave it out")
	between := func(field string, value, low, high time.Duration) {
		problem(value < low || value > high, "%s: %s: from %s to %s", field, value, low, high)
	}
	between("discovery_interval", d.DiscoveryInterval, time.Second, 24*time.Hour)
	between("poll_interval", d.PollInterval, 200*time.Millisecond, time.Minute)
	between("request_timeout", d.RequestTimeout, time.Second, 5*time.Minute)
	between("scan_timeout", d.ScanTimeout, time.Second, 24*time.Hour)
	problem(d.MaxRecords < 1 || d.MaxRecords > 10_000, "max_records: %d: from 1 to 10000", d.MaxRecords)
	problem(d.Concurrency < 1 || d.Concurrency > 256, "concurrency: %d: from 1 to 256", d.Concurrency)
	problem(d.InFlightBytes < 1<<20, "in_flight_bytes: %d: at least 1MiB", d.InFlightBytes)
	problem(d.RecordsPerSecond < 0 || math.IsNaN(d.RecordsPerSecond) || math.IsInf(d.RecordsPerSecond, 0), "records_per_second: %v: a number of at least 0; 0 is no limit", d.RecordsPerSecond)
	problems = append(problems, d.Credentials.validate()...)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("kinesis: %w", err)
	}
	return nil
}

func (s *Source) validateStream() (problems []error) {
	switch {
	case s.Stream == "" && s.StreamARN == "":
		problems = append(problems, errors.New("stream: none given: name one, or give a stream_arn"))
	case s.Stream != "" && s.StreamARN != "":
		problems = append(problems, errors.New("stream_arn: given beside stream: use one of them"))
	case s.Stream != "" && !streamPattern.MatchString(s.Stream):
		problems = append(problems, fmt.Errorf("stream: %q is no stream name: 1 to 128 letters, digits, dots, dashes and underscores", s.Stream))
	case s.StreamARN != "" && !arnPattern.MatchString(s.StreamARN):
		problems = append(problems, fmt.Errorf("stream_arn: %q is no ARN of a stream, such as arn:aws:kinesis:eu-west-1:123456789012:stream/orders", s.StreamARN))
	}
	if s.Endpoint != "" {
		u, err := url.Parse(s.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			problems = append(problems, fmt.Errorf("endpoint: %q is no address such as http://127.0.0.1:4567", s.Endpoint))
		}
	}
	return problems
}

// withDefaults returns a copy with every zero value replaced by its default.
func (s *Source) withDefaults() Source {
	d := *s
	if d.Start.IsZero() {
		d.Start = TrimHorizon()
	}
	orDefault(&d.LatestBy, ByClock)
	orDefault(&d.OnLost, Fail)
	orDefault(&d.ScanTimeout, DefaultScanTimeout)
	orDefault(&d.DiscoveryInterval, DefaultDiscoveryInterval)
	orDefault(&d.PollInterval, DefaultPollInterval)
	orDefault(&d.RequestTimeout, DefaultRequestTimeout)
	orDefault(&d.MaxRecords, DefaultMaxRecords)
	orDefault(&d.Concurrency, DefaultConcurrency)
	orDefault(&d.InFlightBytes, DefaultInFlightBytes)
	return d
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// name is the stream's name, also when only its ARN was given.
func (s *Source) name() string {
	if s.Stream != "" {
		return s.Stream
	}
	if m := arnPattern.FindStringSubmatch(s.StreamARN); m != nil {
		return m[1]
	}
	return s.StreamARN
}

// region is what was configured, or what the ARN says.
func (s *Source) region() string {
	if parts := strings.Split(s.StreamARN, ":"); s.Region == "" && len(parts) > 3 {
		return parts[3]
	}
	return s.Region
}

// topology is the policy and identity of the shards' order.
func (s *Source) topology(parallelism int) lineage.Config {
	return lineage.Config{Continue: s.OnLost == Continue, Parallelism: parallelism, Identity: s.identity()}
}
