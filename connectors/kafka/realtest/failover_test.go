package realtest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/sdk"
)

// writer writes numbered records to partition 0 all the time, acknowledged by all replicas in sync, and counts those that were
// acknowledged.
type writer struct {
	stop func()

	mu    sync.Mutex
	acked int
	err   error
}

// writeOn starts a writer, one record every ten milliseconds. Each is written until it is acknowledged, by an idempotent producer, so once.
func (c *cluster) writeOn(topic string) *writer {
	c.t.Helper()
	client := c.newClient()
	ctx, cancel := context.WithCancel(c.t.Context())
	w := new(writer)
	var running sync.WaitGroup
	w.stop = func() {
		cancel()
		running.Wait()
	}
	c.t.Cleanup(w.stop)
	running.Go(func() {
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-pace.C:
			case <-ctx.Done():
				w.fail(client.Flush(context.WithoutCancel(ctx)))
				return
			}
			client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topic, Value: strconv.AppendInt(nil, int64(n), 10)}, func(_ *kgo.Record, err error) {
				w.acknowledge(err)
			})
		}
	})
	return w
}

func (w *writer) acknowledge(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.acked++
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// leaderLoss is a way to lose the leader of a partition, and to have the node back afterwards.
type leaderLoss struct {
	name string
	lose func(s *kafkaserver.Server, leader int) error
	heal func(s *kafkaserver.Server, leader int) error
}

var leaderLosses = []leaderLoss{
	{"kill -9", (*kafkaserver.Server).Kill9, (*kafkaserver.Server).Restart},
	{"SIGSTOP", (*kafkaserver.Server).Stop, (*kafkaserver.Server).Cont},
	{"orderly shutdown", (*kafkaserver.Server).Terminate, (*kafkaserver.Server).Restart},
}

// resumesWithin is how long after a new leader is known to whoever asks for it the reader may show its first record.
const resumesWithin = 2 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestALostLeaderLosesAndRepeatsNothingAndReadingGoesOn(t *testing.T) {
	server := kafkaserver.SharedCluster(t)
	for _, loss := range leaderLosses {
		t.Run(loss.name, func(t *testing.T) { loseLeader(t, clusterOf(t, server), loss) })
	}
}

// Here the client has already given up its first request to the frozen leader when there is a new one, and waits for the next.
func TestAFrozenLeaderThatIsReplacedLateIsLeftAtOnce(t *testing.T) {
	server := kafkaserver.StartCluster(t, kafkaserver.Options{Properties: map[string]string{
		"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "6500", "replica.lag.time.max.ms": "5000",
	}})
	loseLeader(t, clusterOf(t, server), leaderLosses[1])
}

func loseLeader(t *testing.T, c *cluster, loss leaderLoss) {
	t.Helper()
	topic := c.topic(1, 3, "min.insync.replicas=2")
	before := c.partition(topic)
	leader := int(before.Leader)
	w := c.writeOn(topic)
	j := run(t, c.source(topic))
	j.read(50)
	begin, lost := time.Now(), make(chan error, 1)
	known := c.knowLeader(topic, before)
	go func() { lost <- loss.lose(c.server, leader) }() // reading goes on meanwhile
	healed := false
	heal := func() {
		if !healed {
			healed = true
			must(t, <-lost)
			must(t, loss.heal(c.server, leader))
		}
	}
	defer heal()
	newer := func(r sdk.Record) bool { return r.Epoch > before.LeaderEpoch }
	if err := j.until("a record of the new leader", func() bool {
		return len(j.records) > 0 && newer(j.records[len(j.records)-1])
	}); err != nil {
		t.Fatal(err)
	}
	seen, led := time.Now(), <-known
	t.Logf("a new leader %s after the loss, its first record read %s later; readers made anew: %v", led.Sub(begin), seen.Sub(led), j.failures)
	if gap := seen.Sub(led); gap > resumesWithin {
		t.Errorf("the first record of the new leader came %s after it was known, at most %s are allowed", gap, resumesWithin)
	}
	heal()
	must(t, c.server.WaitReady(t.Context()))
	j.read(len(j.records) + 100)
	w.stop()
	exactlyOnce(t, j, w)
	c.awaitInSync(topic, 3) // the next test begins with a whole cluster
}

// probe is the value of the record that is written as soon as there is a new leader. The writer's own client may take longer to find it.
const probe = "probe"

// knowLeader asks the brokers that do not lead partition 0, all the time, and tells when the first of them knew another leader. Then
// it has a record written.
func (c *cluster) knowLeader(topic string, before kmsg.MetadataResponseTopicPartition) <-chan time.Time {
	c.t.Helper()
	var others []string
	for i, id := range c.server.Brokers() {
		if int32(id) != before.Leader {
			others = append(others, c.server.Addrs()[i])
		}
	}
	client := c.newClient(kgo.SeedBrokers(others...))
	known := make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(c.t.Context())
	var asking sync.WaitGroup
	c.t.Cleanup(func() {
		cancel()
		asking.Wait()
	})
	asking.Go(func() {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			seeds := client.SeedBrokers()
			if p, err := leaderBy(ctx, seeds[n%len(seeds)], topic); err == nil && p.Leader >= 0 && p.LeaderEpoch > before.LeaderEpoch {
				known <- time.Now()
				client.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(probe)}, nil)
				_ = client.Flush(ctx) // the reader sees what was written
				return
			}
			<-again.C
		}
	})
	return known
}

// leaderBy asks one broker about partition 0.
func leaderBy(ctx context.Context, b *kgo.Broker, topic string) (p kmsg.MetadataResponseTopicPartition, err error) {
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, t)
	resp, err := b.Request(ctx, req)
	if err != nil {
		return p, err
	}
	answer, ok := resp.(*kmsg.MetadataResponse)
	if !ok || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return p, errors.New("no answer for the partition")
	}
	return answer.Topics[0].Partitions[0], nil
}

func TestAMovedLeaderLosesAndRepeatsNothing(t *testing.T) {
	c := clusterOf(t, kafkaserver.SharedCluster(t))
	topic := c.topic(1, 3, "min.insync.replicas=2")
	w := c.writeOn(topic)
	j := run(t, c.source(topic))
	j.read(50)
	for range 3 {
		before := c.partition(topic)
		c.prefer(topic, before.Replicas[1:], before.Replicas[0])
		eventually(t, "another leader", func(ctx context.Context) (bool, error) {
			_, now, err := c.metadata(ctx, topic)
			return now.LeaderEpoch > before.LeaderEpoch, err
		})
		j.read(len(j.records) + 50)
	}
	w.stop()
	exactlyOnce(t, j, w)
}

// prefer puts the replicas in another order and lets the first one lead.
func (c *cluster) prefer(topic string, order []int32, then int32) {
	c.t.Helper()
	replicas := append(slices.Clone(order), then)
	var want kadm.AlterPartitionAssignmentsReq
	want.Assign(topic, 0, replicas)
	assigned, err := c.admin.AlterPartitionAssignments(c.t.Context(), want)
	if err = errors.Join(err, assigned.Error()); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, "the preferred leader", func(ctx context.Context) (bool, error) {
		set := make(kadm.TopicsSet)
		set.Add(topic, 0)
		if _, err := c.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set); err != nil {
			return false, err
		}
		_, now, err := c.metadata(ctx, topic)
		return now.Leader == replicas[0], err
	})
}

// exactlyOnce reads what is left and compares with what was acknowledged.
func exactlyOnce(t *testing.T, j *job, w *writer) {
	t.Helper()
	if w.err != nil {
		t.Fatalf("the writer failed: %v", w.err)
	}
	written := func() (n int) {
		for _, r := range j.records {
			if string(r.Value) != probe {
				n++
			}
		}
		return n
	}
	must(t, j.until("everything is read", func() bool { return written() >= w.count() }))
	end := time.Now().Add(500 * time.Millisecond) // for whatever should not come; what does is looked at below, and so is a late probe
	must(t, j.until("a quiet time", func() bool { return time.Now().After(end) }))
	n := 0
	for i, r := range j.records {
		switch {
		case r.Offset != int64(i):
			t.Fatalf("record %d has offset %d", i, r.Offset)
		case string(r.Value) == probe:
		case string(r.Value) != strconv.Itoa(n):
			t.Fatalf("record %d is number %s, want %d", i, r.Value, n)
		default:
			n++
		}
	}
	if n != w.count() {
		t.Errorf("read %d records, %d were acknowledged", n, w.count())
	}
}
