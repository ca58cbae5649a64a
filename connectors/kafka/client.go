package kafka

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	// retryPause is the wait between attempts of the client: short, because a new leader is usually elected within a second,
	// and constant, because a doubling wait would outlive the election it waits for.
	retryPause = 250 * time.Millisecond
	// requestOverhead is how long a broker may stay silent beyond the wait that a request allows it.
	requestOverhead = 5 * time.Second
	// metadataPause is the least time between looks for moved leaders.
	metadataPause = time.Second
	// replicaFor is how long a follower in the reader's rack is fetched from before the leader is asked again. The client asks no sooner when
	// that follower is gone, and by itself not for half an hour. Asking costs one fetch without records.
	replicaFor = 10 * time.Second
	// discoveryRetries bounds the attempts of one request of discovery, which is itself repeated.
	discoveryRetries = 3
)

func (s *Source) commonOptions() ([]kgo.Opt, error) {
	access, err := accessOptions(s.TLS, s.SASL, s.DialTimeout, s.Client)
	if err != nil {
		return nil, err
	}
	return append(access,
		kgo.SeedBrokers(s.Brokers...),
		kgo.ClientID(s.ClientID),
		kgo.RequestTimeoutOverhead(requestOverhead),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryPause }),
		kgo.BrokerMaxReadBytes(int32(s.BrokerMaxReadBytes)),
		kgo.MaxDecompressBatchBytes(s.MaxDecompressBatchBytes),
		kgo.ConnIdleTimeout(s.IdleTimeout),
		kgo.DisableClientMetrics(),
	), nil
}

// askingClient makes a client for a few requests, each tried again that many times. The caller closes it. An error is
// one of the configuration.
func (s *Source) askingClient(retries int) (*kgo.Client, error) {
	options, err := s.commonOptions()
	if err != nil {
		return nil, sdk.Fatal(fmt.Errorf("kafka: %w", err))
	}
	options = append(options, kgo.RequestRetries(retries))
	return newClient(append(options, s.Client...))
}

// fetchClient makes the client of a reader, which consumes nothing yet, and keeps count of its connections. The caller closes it. An error
// is one of the configuration.
//
// What dials is what the options come to, with TLS or as a user of the package wants it, so it is asked of a client that never connects.
func (s *Source) fetchClient(log kgo.Logger, hooks kgo.Hook) (*kgo.Client, *connections, error) {
	options, err := s.fetchOptions(log, hooks)
	if err != nil {
		return nil, nil, err
	}
	model, err := newClient(options)
	if err != nil {
		return nil, nil, err
	}
	dialTo, ok := model.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	model.Close()
	made := newConnections(dialTo)
	if ok {
		options = append(options, kgo.DialTLSConfig(nil), kgo.Dialer(made.dial))
	}
	client, err := newClient(options)
	return client, made, err
}

// fetchOptions are the options of a reader's client.
//
// KeepRetryableFetchErrors: the client retries by itself either way, but in a fetch that also brings records of others it does so
// without a pause, thousands of times a second while a topic is gone. The fetcher wants to know, and paces.
//
// NoResetOffset: an offset that the log does not hold is an error here, never a silent jump. Control records are kept
// because the marker that ends a transaction may be the last offset before a stop.
func (s *Source) fetchOptions(log kgo.Logger, hooks kgo.Hook) ([]kgo.Opt, error) {
	options, err := s.commonOptions()
	if err != nil {
		return nil, sdk.Fatal(fmt.Errorf("kafka: %w", err))
	}
	options = append(options,
		kgo.Rack(s.Rack),
		kgo.RecheckPreferredReplicaInterval(replicaFor),
		kgo.ConsumeStartOffset(kgo.NoResetOffset()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(s.Isolation.fetchLevel()),
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(),
		kgo.FetchMaxWait(s.FetchMaxWait),
		kgo.FetchMaxBytes(int32(s.FetchMaxBytes)),
		kgo.FetchMaxPartitionBytes(int32(s.FetchMaxPartitionBytes)),
		kgo.MetadataMinAge(metadataPause),
		kgo.WithLogger(log),
		kgo.WithHooks(hooks),
	)
	return append(options, s.Client...), nil
}

func newClient(options []kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, sdk.Fatal(fmt.Errorf("kafka: client options: %w", err))
	}
	return client, nil
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
