package kafka_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// events is the topic whose partitions are the parts of a system.
const events = "events"

// system is a broker behind a network that hangs, fails and drops connections when the suite wants it to.
type system struct {
	*inprocess.Network
	broker *kafkatest.Broker

	failed  int // how often Fail was called
	refusal *kfake.FaultHandle
}

var (
	_ conformance.Failer  = (*system)(nil)
	_ conformance.Dropper = (*system)(nil)
	_ conformance.Grower  = (*system)(nil)
)

// steady is the network as the broker has it, and who writes to it: nothing happens to their connections.
type steady struct{ *inprocess.Network }

func (s steady) Listen(_, _ string) (net.Listener, error) { return s.Listener(), nil }

func (s steady) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.DialSound(ctx, network, address)
}

func newSystem(parts int) *system {
	n := inprocess.NewNetwork()
	b, err := kafkatest.NewBroker(kafkatest.Options{Port: 9092, Network: steady{n}, Topics: map[string]int32{events: int32(parts)}})
	if err != nil {
		panic(err)
	}
	return &system{Network: n, broker: b}
}

func (s *system) Append(part int, values ...string) {
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: events, Partition: int32(part), Value: []byte(v)}
	}
	must(s.broker.Produce(context.Background(), records...))
}

// Fail breaks connections, and every other time has the broker refuse instead, as one that does not lead the partitions any more.
func (s *system) Fail(calls int) {
	s.Network.Fail(0)
	if s.refusal != nil {
		s.refusal.Remove()
		s.refusal = nil
	}
	if calls == 0 {
		return
	}
	if s.failed++; s.failed%2 == 1 {
		s.Network.Fail(calls)
		return
	}
	s.refusal = s.broker.Cluster().Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch}, Err: kerr.NotLeaderForPartition, Count: calls,
	})
}

func (s *system) Grow(parts int) {
	must(s.broker.AddPartitions(context.Background(), events, int32(parts)))
}

// must ends a case that cannot go on.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *system) Close() {
	s.broker.Close()
	s.Network.Close()
}

func (s *system) source() *kafka.Source {
	return &kafka.Source{Brokers: s.broker.Addrs(), Topics: []string{events}, Client: []kgo.Opt{kgo.Dialer(s.Dial)}}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Harness[kafka.Split, *system]{
		Backend: newSystem,
		Source:  func(s *system) sdk.Source[kafka.Split] { return s.source() },
		Bounded: func(s *system) sdk.Source[kafka.Split] {
			source := s.source()
			source.Stop = kafka.Latest()
			return source
		},
		Golden: "../../testdata/splits/kafka-v%d-one.bin",
		// An outage backs discovery off, up to a minute.
		Discovery: 2 * time.Minute,
	})
}
