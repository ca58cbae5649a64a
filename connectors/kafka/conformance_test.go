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

	// transactional appends in transactions, of which some are aborted.
	transactional bool
	appends       int

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
	if !s.transactional {
		must(s.broker.Produce(context.Background(), records...))
		return
	}
	if s.appends++; s.appends%2 == 0 {
		t, err := s.broker.Begin(context.Background(), &kgo.Record{Topic: events, Partition: int32(part), Value: []byte("aborted")})
		must(err)
		must(t.Abort(context.Background()))
	}
	t, err := s.broker.Begin(context.Background(), records...)
	must(err)
	must(t.Commit(context.Background()))
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

// harness is for sources that are configured in a way.
func harness(backend func(parts int) *system, configure func(*kafka.Source)) conformance.Harness[kafka.Split, *system] {
	return conformance.Harness[kafka.Split, *system]{
		Backend: backend,
		Source: func(s *system) sdk.Source[kafka.Split] {
			source := s.source()
			configure(source)
			return source
		},
		Bounded: func(s *system) sdk.Source[kafka.Split] {
			source := s.source()
			configure(source)
			source.Stop = kafka.Latest()
			return source
		},
		Golden:    "../../testdata/splits/kafka-v%d-one.bin",
		Discovery: 2 * time.Minute,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(newSystem, func(*kafka.Source) {}))
}

// passes runs some of the cases.
func passes(t *testing.T, h conformance.Harness[kafka.Split, *system], prefixes ...string) {
	t.Helper()
	results, err := conformance.Examine(t, h, prefixes...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Failed() || r.Skipped != "" {
			t.Errorf("%s %s\n%s", r.Name, r.Skipped, r)
		}
	}
}

// Markers and aborted records take offsets of which a reader sees nothing.
func TestConformanceOfTransactions(t *testing.T) {
	t.Parallel()
	transactional := func(parts int) *system {
		s := newSystem(parts)
		s.transactional = true
		return s
	}
	passes(t, harness(transactional, func(*kafka.Source) {}),
		"end/", "state/", "reader/record_budget", "reader/refused_output_ends_the_turn", "engine/bounded_job_ends", "engine/a_job_is_killed")
}

// Who commits positions of checkpoints has a goroutine and a connection more, which are on nobody's way.
func TestConformanceWithACommitGroup(t *testing.T) {
	t.Parallel()
	passes(t, harness(newSystem, func(s *kafka.Source) { s.CommitGroup = "watchers" }),
		"checkpoint/", "close/", "reader/labels_are_restored", "engine/checkpoints_while_the_system_hangs", "engine/rescales", "engine/system_fails")
}
