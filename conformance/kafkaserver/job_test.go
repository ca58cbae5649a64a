package kafkaserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

const jobPartitions = 6

func TestAJobWritesEveryRecordOnceWhileTheClusterLosesOneBrokerAfterTheOther(t *testing.T) {
	s := kafkaserver.SharedCluster(t)
	topic := "orders-" + strconv.FormatInt(time.Now().UnixNano(), 10) // the cluster outlives the test
	producer := fill(t, s, topic)
	out := t.TempDir()
	var committed atomic.Int64
	h, err := engine.Start(t.Context(), engine.Job{
		Name: "failover", Parallelism: 2,
		Source:     engine.From(&kafka.Source{Brokers: s.Addrs(), Topics: []string{topic}}),
		Sink:       file.Sink{Path: out},
		Checkpoint: engine.Checkpoint{Dir: t.TempDir(), Interval: 500 * time.Millisecond},
		Listener:   engine.Listener{CheckpointDone: func(m *protocol.Manifest, _ time.Duration) { committed.Store(m.Records) }},
		Logger:     zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the first records", func() bool { return committed.Load() > 100 })
	for i, id := range s.Brokers() {
		lose, heal := s.Kill9, s.Restart
		if i == len(s.Brokers())-1 {
			lose, heal = s.Stop, s.Cont
		}
		begin := time.Now()
		must(t, lose(id))
		awaitMoved(t, s, topic, id)
		before, moved := committed.Load(), time.Now()
		await(t, "records of the new leaders", func() bool { return committed.Load() > before+200 })
		committing := time.Now()
		must(t, heal(id))
		must(t, s.WaitReady(t.Context()))
		awaitInSync(t, s, topic)
		t.Logf("broker %d: other leaders after %s, their records committed %s later, in sync again %s later",
			id, moved.Sub(begin), committing.Sub(moved), time.Since(committing))
	}
	written := producer()
	total := int64(0)
	for _, n := range written {
		total += n
	}
	await(t, "all records", func() bool { return committed.Load() >= total })
	h.Stop()
	result, err := h.Wait(t.Context())
	must(t, err)
	if result.Records != total {
		t.Errorf("the job says %d records, %d were written", result.Records, total)
	}
	compare(t, out, written)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes numbered records to all partitions until it is told to stop, and then says how many each has. Records are acknowledged
// by all replicas in sync and written by an idempotent producer, so each is in the log once.
func fill(t *testing.T, s *kafkaserver.Server, topic string) (stop func() [jobPartitions]int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second), kgo.MetadataMinAge(200*time.Millisecond))
	must(t, err)
	t.Cleanup(client.Close)
	replicas := "2"
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), jobPartitions, 3, map[string]*string{"min.insync.replicas": &replicas}, topic)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var (
		written [jobPartitions]int64
		writing sync.WaitGroup
		failed  atomic.Pointer[error]
	)
	writing.Go(func() {
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
			for p := range written {
				client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topic, Partition: int32(p), Value: strconv.AppendInt(nil, written[p], 10)},
					func(_ *kgo.Record, err error) {
						if err != nil {
							failed.Store(&err)
						}
					})
				written[p]++
			}
		}
	})
	t.Cleanup(cancel)
	return func() [jobPartitions]int64 {
		t.Helper()
		cancel()
		writing.Wait()
		must(t, client.Flush(t.Context()))
		if err := failed.Load(); err != nil {
			t.Fatalf("the producer failed: %v", *err)
		}
		return written
	}
}

// await asks again and again until done says so: what it is about happens in processes of their own.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	limit := time.After(90 * time.Second)
	for !done() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// awaitMoved waits until a broker leads nothing any more.
func awaitMoved(t *testing.T, s *kafkaserver.Server, topic string, broker int) {
	t.Helper()
	awaitPartitions(t, s, topic, "other leaders", func(p kadm.PartitionDetail) bool { return p.Leader >= 0 && p.Leader != int32(broker) })
}

func awaitInSync(t *testing.T, s *kafkaserver.Server, topic string) {
	t.Helper()
	awaitPartitions(t, s, topic, "all replicas in sync", func(p kadm.PartitionDetail) bool { return len(p.ISR) == len(p.Replicas) })
}

func awaitPartitions(t *testing.T, s *kafkaserver.Server, topic, what string, good func(kadm.PartitionDetail) bool) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.RequestTimeoutOverhead(time.Second))
	must(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	await(t, what, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		topics, err := admin.ListTopics(ctx, topic)
		if err != nil || topics.Error() != nil || len(topics[topic].Partitions) != jobPartitions {
			return false
		}
		for _, p := range topics[topic].Partitions {
			if !good(p) {
				return false
			}
		}
		return true
	})
}

// compare reads the visible files and wants each record once.
func compare(t *testing.T, dir string, written [jobPartitions]int64) {
	t.Helper()
	seen := make([]map[string]int, jobPartitions)
	for p := range seen {
		seen[p] = make(map[string]int)
	}
	must(t, readAll(dir, seen))
	for p, n := range written {
		for i := range n {
			if times := seen[p][strconv.FormatInt(i, 10)]; times != 1 {
				t.Fatalf("record %d of partition %d is there %d times", i, p, times)
			}
		}
		if int64(len(seen[p])) != n {
			t.Errorf("partition %d: %d records, %d were written", p, len(seen[p]), n)
		}
	}
}

// readAll reads the visible files of a folder.
func readAll(dir string, seen []map[string]int) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := path != dir && strings.HasPrefix(d.Name(), ".")
		switch {
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || d.IsDir():
			return nil
		default:
			return readFile(path, seen)
		}
	})
}

func readFile(path string, seen []map[string]int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var rec struct {
			Partition int    `json:"partition"`
			Value     string `json:"value"`
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return err
		}
		seen[rec.Partition][rec.Value]++
	}
	return lines.Err()
}
