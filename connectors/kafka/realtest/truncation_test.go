package realtest

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

// outdated makes a log end at 20 on one broker and at 10 on another, lets a reader read all of it, and makes the other broker leader
// by an unclean election. It returns the reader and the position behind the 20 records.
func outdated(t *testing.T, c *cluster) (topic string, live *job, at kafka.Split, heal func()) {
	t.Helper()
	topic = c.topic(1, 2, "min.insync.replicas=1", "unclean.leader.election.enable=true")
	c.write(numbered(topic, 0, 10)...)
	c.awaitInSync(topic, 2)
	p := c.partition(topic)
	leader, follower := int(p.Leader), 0
	for _, r := range p.Replicas {
		if int(r) != leader {
			follower = int(r)
		}
	}
	must(t, c.server.Terminate(follower))
	c.awaitInSync(topic, 1)
	c.write(numbered(topic, 10, 10)...)
	live = run(t, c.source(topic))
	live.read(20)
	at = live.saved[0]
	must(t, c.server.Kill9(leader))
	must(t, c.server.Restart(follower))
	eventually(t, "the out-of-date replica to lead", func(ctx context.Context) (bool, error) {
		_, now, err := c.metadata(ctx, topic)
		return int(now.Leader) == follower, err
	})
	return topic, live, at, func() {
		must(t, c.server.Restart(leader))
		must(t, c.server.WaitReady(t.Context()))
	}
}

func TestALogThatWasTruncatedByAnUncleanElectionIsAnErrorThatNamesTheRange(t *testing.T) {
	c := clusterOf(t, kafkaserver.SharedCluster(t))
	topic, live, at, heal := outdated(t, c)
	defer heal()
	if at.Offset != 20 {
		t.Fatalf("the position is %+v", at)
	}
	t.Run("a live reader", func(t *testing.T) {
		says(t, live.fail(), kafka.ErrTruncated, topic, "partition 0", "10 to 19")
		wantCount(t, live, 20)
	})
	t.Run("a restored position", func(t *testing.T) {
		says(t, resume(t, c.source(topic), at).fail(), kafka.ErrTruncated, "10 to 19")
	})
	t.Run("a restored position without its epoch is out of range", func(t *testing.T) {
		blind := at
		blind.Epoch = kafka.NoEpoch
		says(t, resume(t, c.source(topic), blind).fail(), kafka.ErrOffsetOutOfRange, "offset 20", "ends at 10")
	})
	t.Run("the position where the logs part is right", func(t *testing.T) {
		right := at
		right.Offset, right.Stop = 10, 10
		j := resume(t, c.source(topic), right)
		j.tellNoMore()
		j.end()
	})
	c.write(numbered(topic, 100, 20)...) // the log grows to 30
	t.Run("a restored position when the log has grown again", func(t *testing.T) {
		j := resume(t, c.source(topic), at)
		says(t, j.fail(), kafka.ErrTruncated, "10 to 19")
		wantCount(t, j, 0)
	})
	t.Run("a restored position without its epoch sees nothing of it", func(t *testing.T) {
		blind := at // which is why the epoch of the last record is part of the position
		blind.Epoch = kafka.NoEpoch
		j := resume(t, c.source(topic), blind)
		j.read(10)
		if got := j.records[0]; got.Offset != 20 || string(got.Value) != "110" {
			t.Errorf("the first record is %q at %d", got.Value, got.Offset)
		}
	})
	t.Run("the policy goes on where the logs part", func(t *testing.T) {
		s := c.source(topic)
		s.OnLost = kafka.ContinueEarliest
		j := resume(t, s, at)
		j.read(20)
		if got := j.records[0]; got.Offset != 10 || string(got.Value) != "100" {
			t.Errorf("the first record is %q at %d", got.Value, got.Offset)
		}
	})
}

func wantCount(t *testing.T, j *job, n int) {
	t.Helper()
	if len(j.records) != n {
		t.Errorf("read %v, want %d records", offsets(j.records), n)
	}
}

func TestRecordsOfOneReplicaAloneAreNotShownWhileTwoHaveToHaveThem(t *testing.T) {
	c := clusterOf(t, kafkaserver.SharedCluster(t))
	topic := c.topic(1, 2, "min.insync.replicas=2")
	c.write(numbered(topic, 0, 5)...)
	c.awaitInSync(topic, 2)
	p := c.partition(topic)
	follower := p.Replicas[0]
	if follower == p.Leader {
		follower = p.Replicas[1]
	}
	must(t, c.server.Terminate(int(follower)))
	healed := false
	defer func() {
		if !healed {
			must(t, c.server.Restart(int(follower)))
		}
	}()
	c.awaitInSync(topic, 1)
	one := c.newClient(kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	writeBy(t, one, numbered(topic, 5, 5)...)
	s := c.source(topic)
	s.Stop = kafka.Latest()
	j := run(t, s)
	j.end()
	wantOffsets(t, j, 0, 1, 2, 3, 4)
	healed = true
	must(t, c.server.Restart(int(follower)))
	c.awaitInSync(topic, 2)
	must(t, c.server.WaitReady(t.Context()))
	after := run(t, c.source(topic))
	after.read(10)
	wantOffsets(t, after, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
}
