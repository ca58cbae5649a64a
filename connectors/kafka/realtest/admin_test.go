package realtest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// cluster is a server with a client that writes to it and changes it.
type cluster struct {
	t      testing.TB
	server *kafkaserver.Server
	client *kgo.Client
	admin  *kadm.Client
}

func shared(t testing.TB) *cluster { return clusterOf(t, kafkaserver.Shared(t)) }

func clusterOf(t testing.TB, s *kafkaserver.Server) *cluster {
	t.Helper()
	c := &cluster{t: t, server: s}
	c.client = c.newClient()
	c.admin = kadm.NewClient(c.client)
	return c
}

// newClient makes a client that writes to the partitions that records name, and is closed with the test.
func (c *cluster) newClient(options ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.server.Addrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RequestTimeoutOverhead(time.Second),
		kgo.ProduceRequestTimeout(time.Second), // so that a writer leaves a frozen leader as soon as there is another one
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.DisableClientMetrics(),
	}, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

var (
	notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)
	topics     atomic.Int64
)

// topic creates a topic of the test's own. replicas are per partition.
func (c *cluster) topic(partitions int32, replicas int16, config ...string) string {
	c.t.Helper()
	name := notInNames.ReplaceAllString(c.t.Name(), "-")
	name = fmt.Sprintf("%s-%d-%d", name[:min(len(name), 100)], time.Now().UnixNano(), topics.Add(1))
	c.create(name, partitions, replicas, config...)
	return name
}

// create creates a topic. config is name=value each.
func (c *cluster) create(name string, partitions int32, replicas int16, config ...string) {
	c.t.Helper()
	settings := make(map[string]*string)
	for _, line := range config {
		key, value, _ := strings.Cut(line, "=")
		settings[key] = &value
	}
	if _, err := c.admin.CreateTopic(c.t.Context(), partitions, replicas, settings, name); err != nil {
		c.t.Fatal(err)
	}
	c.awaitInSync(name, int(replicas)) // brokers learn of a topic one by one
}

// awaitInSync waits until so many replicas of partition 0 are in sync.
func (c *cluster) awaitInSync(topic string, n int) {
	c.t.Helper()
	eventually(c.t, "replicas in sync", func(ctx context.Context) (bool, error) {
		_, p, err := c.metadata(ctx, topic)
		return len(p.ISR) == n, err
	})
}

// partition describes partition 0.
func (c *cluster) partition(topic string) (p kmsg.MetadataResponseTopicPartition) {
	c.t.Helper()
	eventually(c.t, "the partition", func(ctx context.Context) (_ bool, err error) {
		_, p, err = c.metadata(ctx, topic)
		return err == nil && p.Leader >= 0, err
	})
	return p
}

func (c *cluster) delete(topic string) {
	c.t.Helper()
	if _, err := c.admin.DeleteTopic(c.t.Context(), topic); err != nil {
		c.t.Fatal(err)
	}
	c.client.PurgeTopicsFromClient(topic)
}

// recreate deletes a topic and creates it anew at once, which the broker allows when the deletion has got far enough.
func (c *cluster) recreate(topic string, partitions int32, replicas int16) {
	c.t.Helper()
	c.delete(topic)
	eventually(c.t, "the topic to be created anew", func(ctx context.Context) (bool, error) {
		_, err := c.admin.CreateTopic(ctx, partitions, replicas, nil, topic)
		return err == nil, err
	})
	c.awaitInSync(topic, int(replicas))
}

// write writes records one batch each, so that offsets and segments are predictable.
func (c *cluster) write(records ...*kgo.Record) {
	c.t.Helper()
	writeBy(c.t, c.client, records...)
}

func writeBy(t testing.TB, client *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, r := range records {
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered makes n records whose values are their numbers, from first.
func numbered(topic string, first, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: fmt.Append(nil, first+i)}
	}
	return records
}

// begin opens a transaction and writes records in it.
func (c *cluster) begin(timeout time.Duration, records ...*kgo.Record) *kgo.Client {
	c.t.Helper()
	client := c.newClient(kgo.TransactionalID(fmt.Sprintf("%s-%d", c.t.Name(), topics.Add(1))), kgo.TransactionTimeout(timeout))
	if err := client.BeginTransaction(); err != nil {
		c.t.Fatal(err)
	}
	writeBy(c.t, client, records...)
	if err := kafkatest.AwaitNoted(c.t.Context(), client, records...); err != nil {
		c.t.Fatal(err)
	}
	return client
}

func (c *cluster) transact(how kgo.TransactionEndTry, records ...*kgo.Record) {
	c.t.Helper()
	client := c.begin(time.Minute, records...)
	if err := client.EndTransaction(c.t.Context(), how); err != nil {
		c.t.Fatal(err)
	}
	client.Close()
	c.awaitStable(records[0].Topic)
}

// awaitStable waits until no transaction is open in partition 0. The broker answers the end of a transaction before its marker is in the log.
func (c *cluster) awaitStable(topic string) {
	c.t.Helper()
	eventually(c.t, "the markers of transactions", func(ctx context.Context) (bool, error) {
		stable, err := c.offset(ctx, topic, last, 1)
		if err != nil {
			return false, err
		}
		end, err := c.offset(ctx, topic, last, 0)
		return stable == end, err
	})
}

// deleteRecords deletes what is before an offset of partition 0.
func (c *cluster) deleteRecords(topic string, before int64) {
	c.t.Helper()
	var at kadm.Offsets
	at.Add(kadm.Offset{Topic: topic, Partition: 0, At: before})
	deleted, err := c.admin.DeleteRecords(c.t.Context(), at)
	if err = errors.Join(err, deleted.Error()); err != nil {
		c.t.Fatal(err)
	}
}

// Questions about where a log begins and ends.
const (
	first = int64(-2)
	last  = int64(-1)
)

// offset asks for the first or last offset of partition 0; isolation 1 is that of committed records.
func (c *cluster) offset(ctx context.Context, topic string, which int64, isolation int8) (int64, error) {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = which, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel, req.Topics = -1, isolation, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, errors.New("no answer for the partition")
	}
	answer := resp.Topics[0].Partitions[0]
	return answer.Offset, kerr.ErrorForCode(answer.ErrorCode)
}

// mustOffset is offset, which must be answered.
func (c *cluster) mustOffset(topic string, which int64, isolation int8) int64 {
	c.t.Helper()
	at, err := c.offset(c.t.Context(), topic, which, isolation)
	if err != nil {
		c.t.Fatal(err)
	}
	return at
}

// metadata describes partition 0 and the topic's id.
func (c *cluster) metadata(ctx context.Context, topic string) (id [16]byte, p kmsg.MetadataResponseTopicPartition, err error) {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	switch {
	case err != nil:
		return id, p, err
	case len(resp.Topics) != 1:
		return id, p, errors.New("no answer for the topic")
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return id, p, err
	}
	for _, p := range resp.Topics[0].Partitions {
		if p.Partition == 0 {
			return resp.Topics[0].TopicID, p, nil
		}
	}
	return id, p, errors.New("no answer for the partition")
}

// source reads topics of the cluster.
func (c *cluster) source(topics ...string) *kafka.Source {
	return &kafka.Source{Brokers: c.server.Addrs(), Topics: topics, DiscoveryInterval: time.Second}
}

// split is a position in partition 0 as a checkpoint holds it.
func (c *cluster) split(topic string, offset int64, epoch int32) kafka.Split {
	c.t.Helper()
	var id [16]byte
	eventually(c.t, "the topic", func(ctx context.Context) (_ bool, err error) {
		id, _, err = c.metadata(ctx, topic)
		return err == nil, err
	})
	return kafka.Split{Topic: topic, TopicID: id, Offset: offset, Epoch: epoch, Stop: kafka.NoStop}
}
