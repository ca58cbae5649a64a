package realtest

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

// served counts the bytes that came in fetches, by broker.
type served struct {
	mu    sync.Mutex
	bytes map[int32]int
}

var _ kgo.HookBrokerE2E = (*served)(nil)

const fetchKey = 1

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (s *served) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key != fetchKey || e2e.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[meta.NodeID] += e2e.BytesRead
}

func (s *served) by(broker int32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes[broker]
}

func TestAReaderInARackIsServedByTheReplicaThere(t *testing.T) {
	server := kafkaserver.StartCluster(t, kafkaserver.Options{FastFailover: true, Racks: true})
	c := clusterOf(t, server)
	topic := c.topic(1, 3, "min.insync.replicas=2")
	leader := c.partition(topic).Leader
	follower := leader%3 + 1
	seen := &served{bytes: make(map[int32]int)}
	source := c.source(topic)
	source.Rack = kafkaserver.Rack(int(follower))
	source.Client = append(source.Client, kgo.WithHooks(seen))
	j := run(t, source)
	const size = 100_000
	write := func(from, n int) {
		records := numbered(topic, from, n)
		for _, r := range records {
			r.Key = make([]byte, size/n)
		}
		c.write(records...)
	}
	write(0, 50)
	j.read(50)
	write(50, 50)
	j.read(100)
	write(100, 50)
	j.read(150)
	if got, want := seen.by(follower), size; got < want {
		t.Errorf("the replica in the rack served %d bytes of some %d, the leader %d", got, 3*size, seen.by(leader))
	}
	t.Logf("the replica in the rack served %d bytes, the leader %d", seen.by(follower), seen.by(leader))

	must(t, server.Kill9(int(follower))) // the leader serves again
	begin := time.Now()
	write(150, 50)
	j.read(200)
	t.Logf("without it records came after %s", time.Since(begin))
	for i, r := range j.records {
		if r.Offset != int64(i) {
			t.Fatalf("record %d has offset %d", i, r.Offset)
		}
	}
}
