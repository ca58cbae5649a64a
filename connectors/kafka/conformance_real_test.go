package kafka_test

import (
	"context"
	"crypto/rand"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

// realSystem is a topic of its own on a real broker. Clients of the source reach that through a network that hangs and fails.
type realSystem struct {
	*inprocess.Network
	addrs []string
	topic string
	admin *kadm.Client
	// writer knows as many partitions as there were when it was made.
	writer *kgo.Client
}

func newRealSystem(addrs []string, parts int) *realSystem {
	s := &realSystem{Network: inprocess.NewNetwork(), addrs: addrs, topic: "conformance-" + strings.ToLower(rand.Text())}
	s.Forward(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addrs[0]) })
	s.write()
	created, err := s.admin.CreateTopic(context.Background(), int32(parts), 1, nil, s.topic)
	must(err)
	must(created.Err)
	s.await(parts)
	return s
}

// write makes new clients of the backend's own.
func (s *realSystem) write() {
	if s.writer != nil {
		s.writer.Close()
	}
	var err error
	s.writer, err = kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	must(err)
	s.admin = kadm.NewClient(s.writer)
}

// await waits until the partitions have leaders: the broker makes them after it has said so.
func (s *realSystem) await(parts int) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		topics, err := s.admin.ListTopics(ctx, s.topic)
		must(err)
		led := 0
		for _, p := range topics[s.topic].Partitions {
			if p.Err == nil && p.Leader >= 0 {
				led++
			}
		}
		if led == parts {
			return
		}
	}
}

func (s *realSystem) Append(part int, values ...string) {
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: s.topic, Partition: int32(part), Value: []byte(v)}
	}
	must(s.writer.ProduceSync(context.Background(), records...).FirstErr())
}

func (s *realSystem) Grow(parts int) {
	grown, err := s.admin.UpdatePartitions(context.Background(), parts, s.topic)
	must(err)
	must(grown.Error())
	s.await(parts)
	s.write()
}

func (s *realSystem) Close() {
	s.Network.Close()
	_, _ = s.admin.DeleteTopics(context.Background(), s.topic) // a server that is not ours is left as it was, if that is possible
	s.writer.Close()
}

func (s *realSystem) source() *kafka.Source {
	return &kafka.Source{
		Brokers: s.addrs, Topics: []string{s.topic}, DiscoveryInterval: time.Second, Client: []kgo.Opt{kgo.Dialer(s.Dial)},
	}
}

// The network leads to one broker whatever the address, so there is only one.
func TestConformanceOnARealBroker(t *testing.T) {
	t.Parallel()
	addrs := kafkaserver.Shared(t).Addrs()
	conformance.Run(t, conformance.Harness[kafka.Split, *realSystem]{
		Backend: func(parts int) *realSystem { return newRealSystem(addrs, parts) },
		Source:  func(s *realSystem) sdk.Source[kafka.Split] { return s.source() },
		Bounded: func(s *realSystem) sdk.Source[kafka.Split] {
			source := s.source()
			source.Stop = kafka.Latest()
			return source
		},
		Golden: "../../testdata/splits/kafka-v%d-one.bin",
		Wall:   true, Delay: time.Second, Discovery: 4 * time.Second,
	})
}
