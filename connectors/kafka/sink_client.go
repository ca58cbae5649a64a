package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/penstock-dev/penstock/sdk"
)

func (s *Sink) commonOptions(log kgo.Logger, hooks kgo.Hook) ([]kgo.Opt, error) {
	access, err := accessOptions(s.TLS, s.SASL, s.DialTimeout, s.Client)
	if err != nil {
		return nil, sdk.Fatal(fmt.Errorf("kafka sink: %w", err))
	}
	return append(access,
		kgo.SeedBrokers(s.Brokers...),
		kgo.ClientID(s.ClientID),
		kgo.RequestTimeoutOverhead(requestOverhead),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryPause }),
		kgo.MetadataMinAge(metadataPause),
		kgo.ConnIdleTimeout(s.IdleTimeout),
		kgo.DisableClientMetrics(),
		kgo.WithLogger(log),
		kgo.WithHooks(hooks),
	), nil
}

// produceClient makes a client that writes, under a transactional id unless that is empty. The caller closes it.
//
// It retries for ever what can be retried, and its buffer is bounded, so an outage of the cluster holds the job up and does
// not fail it.
func (s *Sink) produceClient(id string, log kgo.Logger, hooks kgo.Hook) (*kgo.Client, error) {
	options, err := s.commonOptions(log, hooks)
	if err != nil {
		return nil, err
	}
	options = append(options,
		kgo.RecordPartitioner(s.partitioner()),
		kgo.ProducerBatchCompression(s.codec()),
		kgo.ProducerLinger(max(s.Linger, 0)),
		kgo.ProducerBatchMaxBytes(int32(s.BatchMaxBytes)),
		kgo.MaxBufferedRecords(s.MaxBufferedRecords),
		kgo.MaxBufferedBytes(s.MaxBufferedBytes),
	)
	if id != "" {
		options = append(options, kgo.TransactionalID(id), kgo.TransactionTimeout(s.TransactionTimeout))
	}
	return newClient(append(options, s.Client...))
}

func (s *Sink) partitioner() kgo.Partitioner {
	switch s.Partitioning {
	case PartitionKeep:
		return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int { return keptPartition })
	case PartitionRoundRobin:
		return kgo.RoundRobinPartitioner()
	case PartitionByKey:
	}
	return kgo.StickyKeyPartitioner(nil) // hashes like the Java client
}

// keptPartition is the record's own, if there is one of that number. If not the client fails the record with an error that says nothing
// to a program, so the number is turned negative to tell.
func keptPartition(r *kgo.Record, partitions int) int {
	if int(r.Partition) < partitions {
		return int(r.Partition)
	}
	r.Partition = ^r.Partition
	return -1
}

func (s *Sink) codec() kgo.CompressionCodec {
	switch s.Compression {
	case Gzip:
		return kgo.GzipCompression()
	case Snappy:
		return kgo.SnappyCompression()
	case LZ4:
		return kgo.Lz4Compression()
	case Zstd:
		return kgo.ZstdCompression()
	case NoCompression:
	}
	return kgo.NoCompression()
}

// transactionFeature is the cluster-wide switch between the protocols of transactions. From level 2 on, the end of a transaction raises the
// producer's epoch.
const transactionFeature = "transaction.version"

// askClient makes the client for raw requests, after it has logged in. The caller closes it. raises reports that the end of a transaction
// raises the producer's epoch.
//
// A request to end a transaction in its newest version means the protocol of level 2 to a broker, whatever the cluster's level is.
// It must be the protocol under which the transaction was written, so on other clusters the client does not know that version.
func (s *Sink) askClient(ctx context.Context, log kgo.Logger, hooks kgo.Hook) (client *kgo.Client, raises bool, err error) {
	options, err := s.commonOptions(log, hooks)
	if err != nil {
		return nil, false, err
	}
	if client, err = newClient(append(options, s.Client...)); err != nil {
		return nil, false, err
	}
	versions, err := s.versions(ctx, client)
	if err != nil {
		client.Close()
		return nil, false, err
	}
	for i := range versions.FinalizedFeatures {
		if f := &versions.FinalizedFeatures[i]; f.Name == transactionFeature && f.MaxVersionLevel >= 2 {
			return client, true, nil
		}
	}
	client.Close()
	older := kversion.Stable()
	older.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	client, err = newClient(append(append(options, kgo.MaxVersions(older)), s.Client...))
	return client, false, err
}

// versions asks any broker, and another one when that does not answer: one of several that is just going down says nothing about the cluster.
func (s *Sink) versions(ctx context.Context, client *kgo.Client) (*kmsg.ApiVersionsResponse, error) {
	for try := 1; ; try++ {
		versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
		if err == nil {
			return versions, nil
		}
		err = unreachable(ctx, err, loginText(s.SASL))
		if try >= len(s.Brokers) || !transient(err) {
			return nil, err
		}
		if err := sleep(ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

// check asks for what can be known to be wrong before anything is written.
func (s *Sink) check(ctx context.Context, c cluster) error {
	if s.Topic != "" {
		topics, err := c.topics(ctx, []string{s.Topic})
		if err != nil {
			return err
		}
		if t := topics[s.Topic]; errors.Is(t.err, kerr.UnknownTopicOrPartition) || errors.Is(t.err, kerr.TopicAuthorizationFailed) {
			return refused(&kgo.Record{Topic: t.name, Partition: -1}, t.err)
		}
	}
	if s.Delivery == AtLeastOnce {
		return nil
	}
	allowed, known := maxTransactionTimeout(ctx, c.client)
	if known && s.TransactionTimeout > allowed {
		return sdk.Fatal(timeoutError(s.TransactionTimeout, allowed))
	}
	return nil
}

const maxTimeoutConfig = "transaction.max.timeout.ms"

// maxTransactionTimeout asks a broker for its limit. A login that may not see the configuration of brokers is not told; the limit then
// shows when the first transaction begins.
func maxTransactionTimeout(ctx context.Context, asking *kgo.Client) (time.Duration, bool) {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Topics = []kmsg.MetadataRequestTopic{}
	brokers, err := metadata.RequestWith(ctx, asking)
	if err != nil || len(brokers.Brokers) == 0 {
		return 0, false
	}
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType = kmsg.ConfigResourceTypeBroker
	resource.ResourceName = strconv.Itoa(int(brokers.Brokers[0].NodeID))
	resource.ConfigNames = []string{maxTimeoutConfig}
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, asking)
	if err != nil {
		return 0, false
	}
	for i := range resp.Resources {
		for _, c := range resp.Resources[i].Configs {
			if c.Name != maxTimeoutConfig || c.Value == nil {
				continue
			}
			if ms, err := strconv.ParseInt(*c.Value, 10, 64); err == nil {
				return time.Duration(ms) * time.Millisecond, true
			}
		}
	}
	return 0, false
}
