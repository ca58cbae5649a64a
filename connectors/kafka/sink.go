package kafka

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// Delivery is what a [Sink] promises.
type Delivery string

// Deliveries.
const (
	// ExactlyOnce writes in transactions that are committed when their checkpoint has completed.
	ExactlyOnce Delivery = "exactly_once"
	// AtLeastOnce writes with an idempotent producer and waits for all acknowledgements at each checkpoint: after a failure
	// records since the last checkpoint come again, and every record is visible at once.
	AtLeastOnce Delivery = "at_least_once"
)

// Partitioning chooses the partition of a record.
type Partitioning string

// Partitionings.
const (
	// PartitionByKey hashes the key as the Java client does (murmur2), so that programs in both languages agree. Records without
	// key fill one partition's batch after the other.
	PartitionByKey Partitioning = "key"
	// PartitionKeep uses the number of the partition that the record came from. A record whose number the topic does not have
	// is an error.
	PartitionKeep Partitioning = "keep"
	// PartitionRoundRobin deals records out one by one, whatever their key.
	PartitionRoundRobin Partitioning = "round_robin"
)

// Compression of the batches that are sent. A broker may store them otherwise.
type Compression string

// Compressions.
const (
	NoCompression Compression = "none"
	Gzip          Compression = "gzip"
	Snappy        Compression = "snappy"
	LZ4           Compression = "lz4"
	Zstd          Compression = "zstd"
)

// Lost says what to do when the records of a completed checkpoint cannot be made visible any more, because the cluster aborted
// their transaction.
type Lost string

// Choices of [Sink.OnLost].
const (
	// LostFail ends the job with an error that says how many records of which checkpoint are lost.
	LostFail Lost = "fail"
	// LostContinue counts and logs them and goes on without them.
	LostContinue Lost = "continue"
)

// Older says what to do when a job is restored from a checkpoint after which it has committed more: what was written since is visible,
// and the source will bring it again.
type Older string

// Choices of [Sink.OnOlder].
const (
	// OlderFail ends the job before it repeats anything.
	OlderFail Older = "fail"
	// OlderContinue logs it and goes on: those records will be there twice.
	OlderContinue Older = "continue"
)

// Sink is a configured Kafka sink. Fill it in, then do not change it: writers share it. A field left at its zero value has the
// default that its comment names.
type Sink struct {
	// Brokers are addresses to find the cluster by, each host:port; one that answers is enough. Required.
	Brokers []string

	// Topic is where all records go. Exactly one of Topic and KeepTopic is given. The sink never creates a topic.
	Topic string
	// KeepTopic writes each record to the topic of the name that it came from, which is meant for another cluster: within one,
	// a job would read again what it wrote.
	KeepTopic bool

	// Delivery defaults to [ExactlyOnce].
	Delivery Delivery
	// Partitioning defaults to [PartitionByKey].
	Partitioning Partitioning
	// Compression defaults to [NoCompression].
	Compression Compression

	// Linger is how long a batch waits for more records; default 5 ms. A checkpoint waits for none.
	Linger time.Duration
	// BatchMaxBytes bounds one batch before compression, and so a record; default 1,000,000. A topic's max.message.bytes must allow it.
	BatchMaxBytes int
	// MaxBufferedRecords and MaxBufferedBytes bound what one writer holds unacknowledged; default 50,000 and 64 MiB. Write blocks
	// while one of them is reached.
	MaxBufferedRecords int
	MaxBufferedBytes   int

	// TransactionTimeout is when the cluster aborts a transaction by itself, counted from its first record; default 15 min, which is
	// what brokers allow unless transaction.max.timeout.ms says otherwise. It bounds the checkpoint interval, and how long the job may be
	// down between a completed checkpoint and the commit of its transactions.
	TransactionTimeout time.Duration
	// IDPrefix begins every transactional id, before the name of the job; default "penstock". Two jobs of one name that write to one
	// cluster need different ones: they would fence each other.
	IDPrefix string
	// OnLost defaults to [LostFail].
	OnLost Lost
	// OnOlder defaults to [OlderFail].
	OnOlder Older

	// TLS makes connections encrypted; nil is plain text.
	TLS *TLS
	// SASL is the login; nil is none.
	SASL *SASL
	// ClientID is what brokers see in logs, metrics and quotas; default "penstock".
	ClientID string
	// DialTimeout bounds one attempt to connect; default 5 s.
	DialTimeout time.Duration
	// IdleTimeout is when a connection that is not used is closed; default 30 s.
	IdleTimeout time.Duration

	// Client adds options to the franz-go clients of this sink, after its own, such as a dialer. Options of the producer or of
	// transactions break what this package promises.
	Client []kgo.Opt

	owners *owners // of the jobs that this process writes for; made by the first writer
}

var _ sdk.Sink = (*Sink)(nil)

// Name implements [sdk.Sink].
func (*Sink) Name() string { return Name }

// NewWriter implements [sdk.Sink].
func (s *Sink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	shared := s.sharedOwners() // first: what follows copies the sink
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	link := newSinkLink(s.withDefaults(), ctx)
	link.sink.owners = shared
	if link.sink.Delivery == AtLeastOnce {
		return &plainWriter{sinkLink: link}, nil
	}
	if err := checkIDs(link.sink.IDPrefix, ctx.Job()); err != nil {
		return nil, sdk.Fatal(err)
	}
	return newTransactionWriter(link, ctx), nil
}

// sinkLink is what the writers of both deliveries have: settings, and the client that asks, made by open.
type sinkLink struct {
	sink   Sink
	log    *slog.Logger
	quiet  limitedLog // for what clients say
	health *health
	asking *kgo.Client // nil before open
	raises bool        // the end of a transaction raises the producer's epoch; known after open
}

func newSinkLink(s Sink, ctx sdk.WriterContext) sinkLink {
	quiet := newLimitedLog(ctx.Logger())
	return sinkLink{sink: s, log: ctx.Logger(), quiet: quiet, health: newHealth(ctx.Metrics(), quiet, loginText(s.SASL))}
}

// open makes the asking client and looks, within a bounded time, at everything that can be known to be wrong before the first
// record.
func (l *sinkLink) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	asking, raises, err := l.sink.askClient(ctx, clientLog{l.quiet}, l.health)
	if err != nil {
		return err
	}
	l.asking, l.raises = asking, raises
	return l.sink.check(ctx, cluster{asking, loginText(l.sink.SASL)})
}

// producer makes a client that writes, under a transactional id unless that is empty.
func (l *sinkLink) producer(id string) (*kgo.Client, error) {
	return l.sink.produceClient(id, clientLog{l.quiet}, l.health)
}

func (l *sinkLink) cluster() cluster { return cluster{l.asking, loginText(l.sink.SASL)} }

func (l *sinkLink) close() {
	if l.asking != nil {
		l.asking.Close()
		l.asking = nil
	}
}
