package realtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/sdk"
)

// writer writes numbered records to partition 0 all the time, acknowledged by all replicas in sync, and notes when each was
// acknowledged.
type writer struct {
	stop func()

	mu    sync.Mutex
	acked map[int]time.Time // by number
	err   error
}

// writeOn starts a writer, one record every ten milliseconds. Each is written until it is acknowledged, by an idempotent producer, so once.
func (c *cluster) writeOn(topic string) *writer {
	c.t.Helper()
	client := c.newClient()
	ctx, cancel := context.WithCancel(c.t.Context())
	w := &writer{acked: make(map[int]time.Time)}
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
				w.acknowledge(n, err)
			})
		}
	})
	return w
}

func (w *writer) acknowledge(n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.acked[n] = time.Now()
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
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

// resumesWithin is how long after the first record that a new leader acknowledged the reader may show it before it counts as
// hanging. The aim is two seconds, and what it took is logged; on a busy machine a reader whose broker froze in the middle of a
// fetch was seen to need 5.4 s, the client's limit for that request.
const resumesWithin = 30 * time.Second

func must(t *testing.T, err error) {
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

func loseLeader(t *testing.T, c *cluster, loss leaderLoss) {
	t.Helper()
	topic := c.topic(1, 3, "min.insync.replicas=2")
	before := c.partition(topic)
	leader := int(before.Leader)
	w := c.writeOn(topic)
	j := run(t, c.source(topic))
	j.read(50)
	begin, lost := time.Now(), make(chan error, 1)
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
	seen := time.Now()
	acked := w.ackedAt(t, j.records[slices.IndexFunc(j.records, newer)].Value)
	t.Logf("acknowledged by the new leader %s after the loss, read %s later; readers made anew: %v", acked.Sub(begin), seen.Sub(acked), j.failures)
	if gap := seen.Sub(acked); gap > resumesWithin {
		t.Errorf("the first record of the new leader came %s after it was written, at most %s are allowed", gap, resumesWithin)
	}
	heal()
	must(t, c.server.WaitReady(t.Context()))
	j.read(len(j.records) + 100)
	w.stop()
	exactlyOnce(t, j, w)
	c.awaitInSync(topic, 3) // the next test begins with a whole cluster
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

func (w *writer) ackedAt(t *testing.T, value []byte) time.Time {
	t.Helper()
	n, err := strconv.Atoi(string(value))
	must(t, err)
	var at time.Time
	eventually(t, fmt.Sprintf("the acknowledgement of record %d", n), func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		at = w.acked[n]
		return !at.IsZero(), w.err
	})
	return at
}

// exactlyOnce reads what is left and compares with what was acknowledged.
func exactlyOnce(t *testing.T, j *job, w *writer) {
	t.Helper()
	if w.err != nil {
		t.Fatalf("the writer failed: %v", w.err)
	}
	j.read(w.count())
	j.quiet(500 * time.Millisecond)
	for i, r := range j.records {
		if string(r.Value) != strconv.Itoa(i) || r.Offset != int64(i) {
			t.Fatalf("record %d is number %s at offset %d", i, r.Value, r.Offset)
		}
	}
	if len(j.records) != w.count() {
		t.Errorf("read %d records, %d were acknowledged", len(j.records), w.count())
	}
}
