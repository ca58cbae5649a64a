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

// leaderMove is a way to move the leader of a partition away from a node, and to heal the cluster afterwards.
type leaderMove struct {
	move func(t *testing.T, c *cluster, topic string, leader int)
	heal func(t *testing.T, c *cluster, leader int)
}

// resumesWithin is how long after the first record that a new leader acknowledged the reader may show it.
const resumesWithin = 2 * time.Second

var leaderMoves = map[string]leaderMove{
	"kill -9": {
		move: func(t *testing.T, c *cluster, _ string, leader int) { must(t, c.server.Kill9(leader)) },
		heal: func(t *testing.T, c *cluster, leader int) { must(t, c.server.Restart(leader)) },
	},
	"SIGSTOP": {
		move: func(t *testing.T, c *cluster, _ string, leader int) { must(t, c.server.Stop(leader)) },
		heal: func(t *testing.T, c *cluster, leader int) { must(t, c.server.Cont(leader)) },
	},
	"orderly shutdown": {
		move: func(t *testing.T, c *cluster, _ string, leader int) { must(t, c.server.Terminate(leader)) },
		heal: func(t *testing.T, c *cluster, leader int) { must(t, c.server.Restart(leader)) },
	},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestALostLeaderLosesAndRepeatsNothingAndReadingGoesOnWithTheNewOne(t *testing.T) {
	server := kafkaserver.SharedCluster(t)
	for name, how := range leaderMoves {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(t, server)
			topic := c.topic(1, 3, "min.insync.replicas=2")
			_, before, err := c.metadata(t.Context(), topic)
			must(t, err)
			leader := int(before.Leader)
			w := c.writeOn(topic)
			j := run(t, c.source(topic))
			j.read(50)
			healed := false
			heal := func() {
				if !healed {
					healed = true
					how.heal(t, c, leader)
				}
			}
			defer heal()
			how.move(t, c, topic, leader)
			lost := time.Now()
			var seen time.Time
			if err := j.until("a record of the new leader", func() bool {
				n := len(j.records)
				if n > 0 && j.records[n-1].Epoch > before.LeaderEpoch {
					seen = time.Now()
				}
				return !seen.IsZero()
			}); err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(j.records, func(r sdk.Record) bool { return r.Epoch > before.LeaderEpoch })
			acked := w.ackedAt(t, j.records[i].Value)
			t.Logf("acknowledged by the new leader %s after the loss, read %s later; readers made anew: %v", acked.Sub(lost), seen.Sub(acked), j.failures)
			if gap := seen.Sub(acked); gap > resumesWithin {
				t.Errorf("the first record of the new leader came %s after it was written, at most %s are allowed", gap, resumesWithin)
			}
			heal()
			must(t, c.server.WaitReady(t.Context()))
			j.read(len(j.records) + 100)
			w.stop()
			exactlyOnce(t, j, w)
			c.awaitInSync(topic, 3)
		})
	}
}

func TestAMovedLeaderLosesAndRepeatsNothing(t *testing.T) {
	c := clusterOf(t, kafkaserver.SharedCluster(t))
	topic := c.topic(1, 3, "min.insync.replicas=2")
	w := c.writeOn(topic)
	j := run(t, c.source(topic))
	j.read(50)
	for range 3 {
		_, before, err := c.metadata(t.Context(), topic)
		must(t, err)
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

// awaitInSync waits until so many replicas are in sync, so that the next test begins with a whole cluster.
func (c *cluster) awaitInSync(topic string, n int) {
	c.t.Helper()
	eventually(c.t, "all replicas in sync", func(ctx context.Context) (bool, error) {
		_, p, err := c.metadata(ctx, topic)
		return len(p.ISR) == n, err
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
