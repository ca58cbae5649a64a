package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// retryPause is the wait between attempts of the client: short, because a new leader is usually elected within a second,
	// and constant, because a doubling wait would outlive the election it waits for.
	retryPause = 250 * time.Millisecond
	// requestOverhead is how long a broker may stay silent beyond the wait that a request allows it.
	requestOverhead = 5 * time.Second
	// metadataPause is the least time between looks for moved leaders.
	metadataPause = time.Second
	// discoveryRetries bounds the attempts of one request of discovery, which is itself repeated.
	discoveryRetries = 3
)

func (s *Source) commonOptions() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(s.Brokers...),
		kgo.ClientID(s.ClientID),
		kgo.DialTimeout(s.DialTimeout),
		kgo.RequestTimeoutOverhead(requestOverhead),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryPause }),
		kgo.BrokerMaxReadBytes(int32(s.BrokerMaxReadBytes)),
		kgo.MaxDecompressBatchBytes(s.MaxDecompressBatchBytes),
		kgo.DisableClientMetrics(),
	}
}

// askingClient makes a client for a few requests, each tried again that many times. The caller closes it.
func (s *Source) askingClient(retries int) (*kgo.Client, error) {
	options := append(s.commonOptions(), kgo.RequestRetries(retries))
	return kgo.NewClient(append(options, s.Client...)...)
}

// fetchClient makes the client of a reader, which consumes nothing yet. The caller closes it.
//
// NoResetOffset: an offset that the log does not hold is an error here, never a silent jump. Control records are kept
// because the marker that ends a transaction may be the last offset before a stop.
func (s *Source) fetchClient(log kgo.Logger, hooks kgo.Hook) (*kgo.Client, error) {
	options := append(s.commonOptions(),
		kgo.ConsumeStartOffset(kgo.NoResetOffset()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(s.Isolation.fetchLevel()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(s.FetchMaxWait),
		kgo.FetchMaxBytes(int32(s.FetchMaxBytes)),
		kgo.FetchMaxPartitionBytes(int32(s.FetchMaxPartitionBytes)),
		kgo.MetadataMinAge(metadataPause),
		kgo.WithLogger(log),
		kgo.WithHooks(hooks),
	)
	return kgo.NewClient(append(options, s.Client...)...)
}

// sleep waits, or returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
