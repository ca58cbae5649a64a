package kafkaserver_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

// life is one run of the job that is handed over.
type life struct {
	t         *testing.T
	handle    *engine.Handle
	committed atomic.Int64 // records of its completed checkpoints, of all lives
	completed atomic.Int64 // checkpoints
}

func live(t *testing.T, s *kafkaserver.Server, topic, state, out string, parallelism int) *life {
	t.Helper()
	l := &life{t: t}
	h, err := engine.Start(t.Context(), engine.Job{
		Name: "handover", Parallelism: parallelism,
		Source:     engine.From(&kafka.Source{Brokers: s.Addrs(), Topics: []string{topic}, Start: kafka.Latest(), DiscoveryInterval: time.Second}),
		Sink:       file.Sink{Path: out},
		Checkpoint: engine.Checkpoint{Dir: state, Interval: 100 * time.Millisecond},
		Listener: engine.Listener{CheckpointDone: func(m *protocol.Manifest, _ time.Duration) {
			l.committed.Store(m.Records)
			l.completed.Add(1)
		}},
		Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	})
	must(t, err)
	l.handle = h
	return l
}

// stop ends the life with a savepoint.
func (l *life) stop() {
	l.t.Helper()
	l.handle.Stop()
	result, err := l.handle.Wait(l.t.Context())
	must(l.t, err)
	if result.Outcome != engine.Stopped {
		l.t.Fatalf("it ended with %v", result.Outcome)
	}
}

func writer(t *testing.T, s *kafkaserver.Server) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// A job is stopped with a savepoint and started elsewhere: another directory, another parallelism, and a topic that grew meanwhile.
func TestAJobThatIsHandedOverRepeatsAndLosesNothingAlsoOfPartitionsAddedMeanwhile(t *testing.T) {
	s := kafkaserver.Shared(t)
	topic := "handover-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	client := writer(t, s)
	admin := kadm.NewClient(client)
	_, err := admin.CreateTopic(t.Context(), 3, 1, nil, topic)
	must(t, err)
	written := make([]int64, 5)
	write := func(partitions, n int) (total int64) {
		t.Helper()
		var batch []*kgo.Record
		for range n {
			for p := range partitions {
				batch = append(batch, &kgo.Record{Topic: topic, Partition: int32(p), Value: strconv.AppendInt(nil, written[p], 10)})
				written[p]++
			}
		}
		must(t, client.ProduceSync(t.Context(), batch...).FirstErr())
		for _, n := range written {
			total += n
		}
		return total
	}
	must(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("before the job")}).FirstErr()) // start: latest leaves it out

	here, there, out := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere"), t.TempDir()
	first := live(t, s, topic, here, out, 2)
	await(t, "the positions in a checkpoint", func() bool { return first.completed.Load() > 1 })
	write(3, 200)
	await(t, "some records", func() bool { return first.committed.Load() > 0 })
	write(3, 200) // and stopped in the middle of them
	first.stop()

	must(t, os.CopyFS(there, os.DirFS(here)))
	write(3, 100)
	grown, err := admin.UpdatePartitions(t.Context(), 5, topic)
	must(t, err)
	must(t, grown.Error())
	await(t, "the added partitions", func() bool {
		topics, err := admin.ListTopics(t.Context(), topic)
		return err == nil && len(topics[topic].Partitions) == 5
	})
	client = writer(t, s) // the other one knows three partitions for a while
	total := write(5, 100)

	second := live(t, s, topic, there, out, 3)
	await(t, "everything so far", func() bool { return second.committed.Load() >= total })
	total = write(5, 50)
	await(t, "what came since", func() bool { return second.committed.Load() >= total })
	second.stop()

	seen := make([]map[string]int, len(written))
	for p := range seen {
		seen[p] = make(map[string]int)
	}
	must(t, readAll(out, seen))
	for p, n := range written {
		for i := range n {
			if times := seen[p][strconv.FormatInt(i, 10)]; times != 1 {
				t.Errorf("record %d of partition %d is there %d times", i, p, times)
			}
		}
		if int64(len(seen[p])) != n {
			t.Errorf("partition %d: %d different records, %d were written", p, len(seen[p]), n)
		}
	}
}
