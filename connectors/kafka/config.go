package kafka

import (
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Defaults of [Source]. They suit a reader that shares its process with others: short waits, so that added partitions are
// read soon, and fetches that stay in the processor's cache.
const (
	DefaultDiscoveryInterval       = 30 * time.Second
	DefaultClientID                = "penstock"
	DefaultDialTimeout             = 5 * time.Second
	DefaultIdleTimeout             = 30 * time.Second
	DefaultFetchMaxWait            = 250 * time.Millisecond
	DefaultFetchMaxPartitionBytes  = 256 << 10
	DefaultFetchMaxBytes           = 16 << 20
	DefaultMaxDecompressBatchBytes = 128 << 20
	DefaultBrokerMaxReadBytes      = 64 << 20
)

// DiscoveryOff is the [Source.DiscoveryInterval] that looks for partitions and topics once, at the first start.
const DiscoveryOff = time.Duration(-1)

// Source is a configured Kafka source. Fill it in, then do not change it: readers and enumerators share it. A field left
// at its zero value has the default that its comment names.
type Source struct {
	// Brokers are addresses to find the cluster by, each host:port; one that answers is enough. They may change between
	// runs of a job. Required.
	Brokers []string

	// Topics are the names to read. Exactly one of Topics and Pattern is given.
	Topics []string
	// Pattern is a regular expression (RE2) that the whole topic name must match. Topics that match later are read
	// from their start. Kafka's internal topics never match.
	Pattern string

	// Start is where a new job begins; the zero value is [Earliest]. With saved state it is ignored: the job goes on
	// where it was.
	Start Position
	// Stop makes the job bounded: it reads the partitions that exist at its first discovery up to there and ends. The zero value
	// means that it never ends. It must not change while there is saved state.
	Stop Position
	// Isolation defaults to [ReadCommitted]. It must not change while there is saved state.
	Isolation Isolation

	// CommitGroup is the consumer group to which the positions of completed checkpoints are committed, for tools that show the lag of
	// groups; empty commits nothing. It must be a group of its own without members. Its offsets are never read, unless Start says so.
	CommitGroup string

	// OnLost is what happens when the log does not hold the position any more: its records were deleted (retention), or the
	// log was truncated (unclean leader election). [Fail], [ContinueEarliest] or [ContinueLatest].
	OnLost Policy
	// OnRecreated is what happens when a topic was deleted and created anew under its name: [Fail], or [ContinueEarliest] to read the
	// new one from its start. A split with a stop always fails: its stop is an offset of the old topic.
	OnRecreated Policy
	// OnDeleted is what happens when the cluster lists a topic or partition no more, for longer than 5 seconds: [Fail], or [Wait]
	// to keep the position, read the others, and go on when it is back with the same id.
	OnDeleted Policy

	// DiscoveryInterval is the time between looks for new partitions and topics; default 30 s, [DiscoveryOff] for never.
	// A bounded job looks once.
	DiscoveryInterval time.Duration

	// TLS makes connections encrypted; nil is plain text.
	TLS *TLS
	// SASL is the login; nil is none.
	SASL *SASL
	// ClientID is what brokers see in logs, metrics and quotas; default "penstock".
	ClientID string
	// Rack is where this process runs, as the brokers' broker.rack names it: brokers that are set up for it then send records from a
	// replica in the same rack. Empty reads from leaders.
	Rack string
	// DialTimeout bounds one attempt to connect; default 5 s.
	DialTimeout time.Duration
	// IdleTimeout is when a connection that is not used is closed; default 30 s, less than load balancers and brokers take, so
	// that no request is sent into a connection which the other side has forgotten.
	IdleTimeout time.Duration
	// RecordsPerSecond limits each reader; 0 is no limit.
	RecordsPerSecond float64

	// FetchMaxWait is how long a broker may hold a fetch when it has nothing new; default 250 ms, at most 30 s. It also bounds how
	// long an added partition waits behind a running fetch.
	FetchMaxWait time.Duration
	// FetchMaxPartitionBytes bounds what one fetch brings of one partition, as stored: compressed records multiply in
	// memory; default 256 KiB. A larger batch is still read.
	FetchMaxPartitionBytes int
	// FetchMaxBytes bounds one fetch from one broker; default 16 MiB.
	FetchMaxBytes int
	// MaxDecompressBatchBytes bounds one batch after decompression; default 128 MiB. A larger one is an error.
	MaxDecompressBatchBytes int
	// BrokerMaxReadBytes bounds any response; default 64 MiB. It must exceed FetchMaxBytes and the largest batch.
	BrokerMaxReadBytes int

	// Client adds options to the franz-go clients of this source, after its own: a dialer, a mechanism that [SASL] lacks. Options that change what is
	// consumed or how errors surface break what this package promises.
	Client []kgo.Opt
}

// Validate reports everything that is wrong with the configuration, each problem with the field it is about. It does no I/O.
func (s *Source) Validate() error {
	d := s.withDefaults()
	problems := d.validateTopics()
	if len(d.Brokers) == 0 {
		problems = append(problems, errors.New("brokers: none given: name at least one, as host:port"))
	}
	for _, address := range d.Brokers {
		if err := checkAddress(address); err != nil {
			problems = append(problems, fmt.Errorf("brokers: %q: %w", address, err))
		}
	}
	known := d.topicFilter()
	problems = append(problems, d.Start.validate("start", known)...)
	problems = append(problems, d.Stop.validate("stop", known)...)
	if d.Stop.kind == earliestPosition {
		problems = append(problems, errors.New("stop: earliest would read nothing: use latest, a timestamp or offsets, or leave it out to read for ever"))
	}
	if d.Isolation > ReadUncommitted {
		problems = append(problems, fmt.Errorf("isolation: %d: use read_committed or read_uncommitted", d.Isolation))
	}
	if d.DiscoveryInterval != DiscoveryOff && d.DiscoveryInterval < time.Second {
		problems = append(problems, fmt.Errorf("discovery_interval: %s: at least 1s, or off", d.DiscoveryInterval))
	}
	if d.RecordsPerSecond < 0 || math.IsNaN(d.RecordsPerSecond) || math.IsInf(d.RecordsPerSecond, 0) {
		problems = append(problems, fmt.Errorf("records_per_second: %v: a number of at least 0; 0 is no limit", d.RecordsPerSecond))
	}
	problems = append(problems, validatePolicy("on_lost", d.OnLost, Fail, ContinueEarliest, ContinueLatest)...)
	problems = append(problems, validatePolicy("on_recreated", d.OnRecreated, Fail, ContinueEarliest)...)
	problems = append(problems, validatePolicy("on_deleted", d.OnDeleted, Fail, Wait)...)
	problems = append(problems, validateAccess(d.TLS, d.SASL)...)
	if err := errors.Join(append(problems, d.validateFetch()...)...); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

func (s *Source) validateTopics() (problems []error) {
	switch {
	case len(s.Topics) == 0 && s.Pattern == "":
		problems = append(problems, errors.New("topics: none given: name topics, or a pattern"))
	case len(s.Topics) > 0 && s.Pattern != "":
		problems = append(problems, errors.New("pattern: given beside topics: use one of them"))
	}
	for i, topic := range s.Topics {
		switch {
		case !legalTopicName(topic):
			problems = append(problems, fmt.Errorf("topics: %q is no topic name: 1 to %d letters, digits, dots, dashes and underscores", topic, maxTopicName))
		case slices.Contains(s.Topics[:i], topic):
			problems = append(problems, fmt.Errorf("topics: %q is named twice", topic))
		}
	}
	if _, err := regexp.Compile(wholeName(s.Pattern)); err != nil {
		problems = append(problems, fmt.Errorf("pattern: %q is no regular expression: %w", s.Pattern, err))
	}
	return problems
}

func (s *Source) validateFetch() (problems []error) {
	between := func(field string, value, low, high int) {
		if value < low || value > high {
			problems = append(problems, fmt.Errorf("%s: %d: from %d to %d", field, value, low, high))
		}
	}
	if s.DialTimeout < 10*time.Millisecond || s.DialTimeout > 5*time.Minute {
		problems = append(problems, fmt.Errorf("dial_timeout: %s: from 10ms to 5m", s.DialTimeout))
	}
	if s.IdleTimeout < time.Second || s.IdleTimeout > time.Hour {
		problems = append(problems, fmt.Errorf("idle_timeout: %s: from 1s to 1h", s.IdleTimeout))
	}
	if s.FetchMaxWait < 10*time.Millisecond || s.FetchMaxWait > 30*time.Second {
		problems = append(problems, fmt.Errorf("fetch_max_wait: %s: from 10ms to 30s", s.FetchMaxWait))
	}
	between("broker_max_read_bytes", s.BrokerMaxReadBytes, 1<<20, 1<<30)
	between("fetch_max_bytes", s.FetchMaxBytes, 1<<10, s.BrokerMaxReadBytes)
	between("fetch_max_partition_bytes", s.FetchMaxPartitionBytes, 1<<10, s.FetchMaxBytes)
	between("max_decompress_batch_bytes", s.MaxDecompressBatchBytes, 1<<20, 1<<30)
	return problems
}

// withDefaults returns a copy with every zero value replaced by its default.
func (s *Source) withDefaults() Source {
	d := *s
	if d.Start.IsZero() {
		d.Start = Earliest()
	}
	orDefault(&d.OnLost, Fail)
	orDefault(&d.OnRecreated, Fail)
	orDefault(&d.OnDeleted, Fail)
	orDefault(&d.DiscoveryInterval, DefaultDiscoveryInterval)
	orDefault(&d.ClientID, DefaultClientID)
	orDefault(&d.DialTimeout, DefaultDialTimeout)
	orDefault(&d.IdleTimeout, DefaultIdleTimeout)
	orDefault(&d.FetchMaxWait, DefaultFetchMaxWait)
	orDefault(&d.FetchMaxPartitionBytes, DefaultFetchMaxPartitionBytes)
	orDefault(&d.FetchMaxBytes, DefaultFetchMaxBytes)
	orDefault(&d.MaxDecompressBatchBytes, DefaultMaxDecompressBatchBytes)
	orDefault(&d.BrokerMaxReadBytes, DefaultBrokerMaxReadBytes)
	return d
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// topicFilter returns what says whether a topic belongs to the source. A pattern that does not compile matches nothing.
func (s *Source) topicFilter() func(topic string) bool {
	if s.Pattern == "" {
		return func(topic string) bool { return slices.Contains(s.Topics, topic) }
	}
	re, err := regexp.Compile(wholeName(s.Pattern))
	if err != nil {
		return func(string) bool { return false }
	}
	return re.MatchString
}

func wholeName(pattern string) string { return `^(?:` + pattern + `)$` }

// maxTopicName is Kafka's own bound.
const maxTopicName = 249

func legalTopicName(name string) bool {
	if name == "" || len(name) > maxTopicName || name == "." || name == ".." {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !legalTopicRune(r) })
}

func legalTopicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("not of the form host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if host == "" {
		return errors.New("the host is missing")
	}
	return nil
}
