package realtest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

// compacted are the settings under which a topic is compacted as soon as it can be.
var compacted = []string{
	"cleanup.policy=compact", "segment.ms=200", "min.cleanable.dirty.ratio=0.01", "delete.retention.ms=0", "max.compaction.lag.ms=300",
}

// keyed makes n records of one key, the last one a tombstone if asked for.
func keyed(topic, key string, n int, tombstone bool) []*kgo.Record {
	records := numbered(topic, 0, n)
	for _, r := range records {
		r.Key = []byte(key)
	}
	if tombstone {
		records[n-1].Value = nil
	}
	return records
}

// survivors asks the broker itself for all batches of a short log, and where the first one begins; -1 when there is none.
func (c *cluster) survivors(ctx context.Context, topic string) (base int64, batches []kmsg.RecordBatch, err error) {
	id, _, err := c.metadata(ctx, topic)
	if err != nil {
		return 0, nil, err
	}
	ask := kmsg.NewFetchRequestTopicPartition()
	ask.CurrentLeaderEpoch, ask.LastFetchedEpoch, ask.LogStartOffset, ask.PartitionMaxBytes = -1, -1, -1, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic, id, append(t.Partitions, ask)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.SessionEpoch, req.MaxBytes, req.Topics = -1, -1, 1<<20, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil || len(resp.Topics) == 0 {
		return 0, nil, err
	}
	raw := resp.Topics[0].Partitions[0].RecordBatches
	for len(raw) > 12 {
		var b kmsg.RecordBatch
		if err := b.ReadFrom(raw); err != nil {
			return 0, nil, err
		}
		batches = append(batches, b)
		raw = raw[min(len(raw), 12+int(b.Length)):]
	}
	if len(batches) == 0 {
		return -1, nil, nil
	}
	return batches[0].FirstOffset, batches, nil
}

// awaitGone waits until no record is left before an offset.
func (c *cluster) awaitGone(topic string, before int64) {
	c.t.Helper()
	eventually(c.t, "compaction", func(ctx context.Context) (bool, error) {
		_, batches, err := c.survivors(ctx, topic)
		if err != nil {
			return false, err
		}
		for _, b := range batches {
			if b.FirstOffset < before && b.NumRecords > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

func TestCompactionLeavesGapsAndNeverMovesTheStartOfTheLog(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1, compacted...)
	c.write(keyed(topic, "a", 10, false)...)
	// A segment is closed by the first record after its time, and compacted only when there is another one behind it.
	eventually(t, "compaction of the first ten records but one", func(ctx context.Context) (bool, error) {
		c.write(keyed(topic, "b", 1, false)...)
		base, _, err := c.survivors(ctx, topic)
		return base == 9, err
	})
	if start := c.mustOffset(topic, first, 0); start != 0 {
		t.Errorf("the log begins at %d, want 0", start)
	}
	end := c.mustOffset(topic, last, 0)
	s := c.source(topic)
	s.Stop = kafka.Latest()
	j := run(t, s)
	j.end()
	got := offsets(j.records)
	if len(got) == 0 || got[0] != 9 || !slices.IsSorted(got) || got[len(got)-1] != end-1 {
		t.Errorf("read %v, want 9 first and %d last", got, end-1)
	}
	if at := j.final(); at.Offset != end {
		t.Errorf("ended at %d, want %d", at.Offset, end)
	}
	// A position inside of a gap is as good as any other.
	inside := c.split(topic, 4, 0)
	inside.Stop = end
	j = resume(t, c.source(topic), inside)
	j.tellNoMore()
	j.end()
	// The cleaner may have gone on meanwhile: what is left of the first reading, and the newest of each key.
	later := offsets(j.records)
	stray := slices.ContainsFunc(later, func(o int64) bool { return !slices.Contains(got, o) })
	if len(later) == 0 || later[0] != 9 || later[len(later)-1] != end-1 || !slices.IsSorted(later) || stray {
		t.Errorf("from within the gap: read %v, before %v", later, got)
	}
}

func TestABoundedReaderEndsWhenCompactionEmptiedEverythingBelowAnOpenTransaction(t *testing.T) {
	t.Parallel()
	server := kafkaserver.Start(t, kafkaserver.Options{Dir: t.TempDir(), Properties: map[string]string{"log.cleaner.min.compaction.lag.ms": "0"}})
	server.RequireOwned(t)
	c := clusterOf(t, server)
	plain := c.newClient(kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	// What an idempotent producer wrote last leaves an empty batch behind, of others nothing is left.
	topics := map[string]*kgo.Client{c.topic(1, 1, compacted...): c.client, c.topic(1, 1, compacted...): plain}
	aged := time.Now().Add(-time.Second) // so that what is written next opens another segment
	for topic, client := range topics {
		records := keyed(topic, "a", 10, true)
		for _, r := range records {
			r.Timestamp = aged
		}
		writeBy(t, client, records...)
	}
	for topic := range topics {
		c.begin(10*time.Minute, keyed(topic, "b", 2, false)...)
		c.awaitOnlyTombstone(topic)
	}
	// The tombstone goes in a second pass, for which there is no reason as long as nothing new may be compacted. Without the cleaner's
	// notes it begins again. A replica that was moved to another broker has none either.
	if err := server.Terminate(1); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(server.DataDir(1), "cleaner-offset-checkpoint")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(1); err != nil {
		t.Fatal(err)
	}
	if err := server.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for topic, client := range topics {
		c.awaitGone(topic, 10)
		if stable := c.mustOffset(topic, last, 1); stable != 10 {
			t.Fatalf("committed up to %d, want 10", stable)
		}
		s := c.source(topic)
		s.Stop = kafka.Latest()
		j := run(t, s)
		j.end()
		wantOffsets(t, j)
		_, batches, err := c.survivors(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		if empty := batches[0].NumRecords == 0; empty != (client == c.client) {
			t.Errorf("idempotent %t: the first batch is %+v", client == c.client, batches[0])
		}
	}
}

// awaitOnlyTombstone waits until compaction left one record below the open transaction.
func (c *cluster) awaitOnlyTombstone(topic string) {
	c.t.Helper()
	eventually(c.t, "compaction down to the tombstone", func(ctx context.Context) (bool, error) {
		base, _, err := c.survivors(ctx, topic)
		return base == 9, err
	})
}
