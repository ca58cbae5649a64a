package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }

// onBoth runs a test against the embedded and a real broker.
func onBoth(t *testing.T, test func(*testing.T, *cluster)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, newCluster(t, kafkatest.Start(t, kafkatest.Options{}).Addrs()))
	})
	t.Run("real", func(t *testing.T) { test(t, newCluster(t, kafkaserver.Shared(t).Addrs())) })
}

type cluster struct {
	t      *testing.T
	addrs  []string
	client *kgo.Client
	admin  *kadm.Client
}

func newCluster(t *testing.T, addrs []string) *cluster {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.DisableClientMetrics(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &cluster{t: t, addrs: addrs, client: client, admin: kadm.NewClient(client)}
}

var topics atomic.Int64

func (c *cluster) topic(partitions int32) string {
	c.t.Helper()
	name := fmt.Sprintf("kafkasink-%d-%d", os.Getpid(), topics.Add(1))
	// Retention goes by the records' own times, and those of the fake source are old.
	keep := map[string]*string{"retention.ms": new("-1")}
	if _, err := c.admin.CreateTopic(c.t.Context(), partitions, 1, keep, name); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// stable is how far each partition is decided, which has to be its end. A broker writes the markers of a transaction after it has
// confirmed the end of it.
func (c *cluster) stable(topic string) kadm.ListedOffsets {
	c.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		ends, err := c.admin.ListEndOffsets(c.t.Context(), topic)
		if err != nil {
			c.t.Fatal(err)
		}
		stable, err := c.admin.ListCommittedOffsets(c.t.Context(), topic)
		if err != nil {
			c.t.Fatal(err)
		}
		open := ""
		stable.Each(func(o kadm.ListedOffset) {
			if end, _ := ends.Lookup(topic, o.Partition); end.Offset != o.Offset {
				open = fmt.Sprintf("an open transaction hides what is behind offset %d of partition %d, which ends at %d", o.Offset, o.Partition, end.Offset)
			}
		})
		if open == "" {
			return stable
		}
		select {
		case <-limit:
			c.t.Fatal(open)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// committed reads what a consumer of committed records sees, up to the end of the log, which no open transaction may hide.
func (c *cluster) committed(topic string) (all []*kgo.Record) {
	c.t.Helper()
	stable := c.stable(topic)
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	stable.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().At(0)
		}
	})
	consumer, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer consumer.Close()
	for len(left) > 0 {
		fetches := consumer.PollFetches(c.t.Context())
		if err := fetches.Err(); err != nil {
			c.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// once checks that each of the splits 0..splits-1 has each of its records 0..perSplit-1 once. Values are "split/number".
func (c *cluster) once(topic string, splits, perSplit int) {
	c.t.Helper()
	seen := make(map[string]int)
	for _, r := range c.committed(topic) {
		seen[string(r.Value)]++
	}
	lost, repeated := 0, 0
	for s := range splits {
		for i := range perSplit {
			switch n := seen[fmt.Sprintf("%d/%d", s, i)]; {
			case n == 0:
				lost++
			case n > 1:
				repeated += n - 1
			}
		}
	}
	if lost+repeated > 0 || len(seen) != splits*perSplit {
		c.t.Errorf("%d lost, %d repeated, %d different values of %d", lost, repeated, len(seen), splits*perSplit)
	}
}

// naming is a sink whose records are named by where they come from, and whose writers fail now and then.
type naming struct {
	*kafka.Sink
	fail func(task int, call string) error
}

func (s naming) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	w, err := s.Sink.NewWriter(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := w.(writer)
	if !ok {
		return nil, errors.New("no committer")
	}
	return &namingWriter{full, s, ctx.Task()}, nil
}

type writer interface {
	sdk.Writer
	sdk.Committer
	sdk.Discarder
}

type namingWriter struct {
	writer
	sink naming
	task int
}

func (w *namingWriter) Write(ctx context.Context, b *sdk.Batch) error {
	var named sdk.Batch
	for r := range b.All() {
		rec := *r
		rec.Value = fmt.Appendf(nil, "%s/%d", strings.TrimPrefix(string(r.Split), "fake-"), r.Offset)
		named.Append(&rec)
	}
	if err := w.sink.fail(w.task, "write"); err != nil {
		return err
	}
	return w.writer.Write(ctx, &named)
}

func (w *namingWriter) Prepare(ctx context.Context, id sdk.CheckpointID) ([]byte, error) {
	data, err := w.writer.Prepare(ctx, id)
	return data, errors.Join(err, w.sink.fail(w.task, "prepare"))
}

func (w *namingWriter) Commit(ctx context.Context, data []byte) error {
	if err := w.sink.fail(w.task, "before commit"); err != nil {
		return err
	}
	return errors.Join(w.writer.Commit(ctx, data), w.sink.fail(w.task, "after commit"))
}

// rarely fails one call of each kind in so many.
func rarely(seed uint64, every int) func(int, string) error {
	var calls atomic.Uint64
	return func(task int, call string) error {
		if rand.New(rand.NewPCG(seed, calls.Add(1))).IntN(every) == 0 { //nolint:gosec // to repeat, no secret
			return fmt.Errorf("task %d fails at %s", task, call)
		}
		return nil
	}
}

func quick() *engine.Options {
	o := engine.DefaultOptions()
	o.RestartLimit, o.CommitAttempts = 10_000, 2
	o.RestartInitial, o.RestartMax = time.Millisecond, 10*time.Millisecond
	return &o
}

// source makes splits whose fetches and emits fail.
func source(t *testing.T, splits, perSplit int) *fake.Source {
	t.Helper()
	s, err := fake.New(fake.Config{Splits: splits, RecordsPerSplit: int64(perSplit), KeyCount: 17, ChunkSize: 50, Faults: fake.Faults{
		FetchLatency: time.Millisecond,
		Script: []fake.Fault{
			{Kind: fake.FailFetch, Split: 0, Record: 100, Times: 2},
			{Kind: fake.FailEmit, Split: 1, Record: int64(perSplit) - 1, Times: 2},
			{Kind: fake.FailEmit, Split: 2, Record: 333, Times: 1},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFailingReadersAndWritersLoseAndRepeatNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		for _, kind := range []exchange.Kind{exchange.Forward, exchange.Keyed} {
			t.Run(string(kind), func(t *testing.T) {
				c := newCluster(t, c.addrs)
				topic, seed := c.topic(3), uint64(time.Now().UnixNano())
				t.Logf("seed %d", seed)
				const splits, perSplit = 4, 2000
				err := engine.Run(t.Context(), engine.Job{
					Name: topic, Parallelism: 3, Source: engine.From(source(t, splits, perSplit)), Exchange: kind,
					Sink:       naming{&kafka.Sink{Brokers: c.addrs, Topic: topic, TransactionTimeout: time.Minute}, rarely(seed, 60)},
					Checkpoint: engine.Checkpoint{Interval: 20 * time.Millisecond}, Options: quick(), Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
				})
				if err != nil {
					t.Fatal(err)
				}
				c.once(topic, splits, perSplit)
			})
		}
	})
}

// One run after the other, each ended in its middle without a savepoint, with another number of tasks.
func TestRunsThatAreCutOffAndRescaledLoseAndRepeatNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		topic, dir := c.topic(3), t.TempDir()
		const splits, perSplit = 4, 3000
		sink := naming{&kafka.Sink{Brokers: c.addrs, Topic: topic, TransactionTimeout: time.Minute}, func(int, string) error { return nil }}
		job := engine.Job{Name: topic, Sink: sink, Options: quick(), Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))}
		job.Checkpoint = engine.Checkpoint{Dir: dir, Interval: 30 * time.Millisecond}
		for _, parallelism := range []int{2, 4, 1, 3} {
			job.Parallelism, job.Source = parallelism, engine.From(source(t, splits, perSplit))
			done, left := make(chan struct{}), 3
			job.Listener.CheckpointDone = func(*protocol.Manifest, time.Duration) {
				if left--; left == 0 {
					close(done)
				}
			}
			h, err := engine.Start(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { _, err := h.Wait(context.WithoutCancel(t.Context())); ended <- err }()
			select {
			case <-done:
				h.Cancel()
				<-ended
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		job.Parallelism, job.Source, job.Listener.CheckpointDone = 2, engine.From(source(t, splits, perSplit)), nil
		if err := engine.Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		c.once(topic, splits, perSplit)
	})
}

func TestFromKafkaToKafka(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		in, out := c.topic(4), c.topic(4)
		const perPartition = 3000
		at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Minute) // of today: retention goes by it
		for p := range 4 {
			for i := range perPartition {
				c.client.Produce(t.Context(), &kgo.Record{
					Topic: in, Partition: int32(p), Key: strconv.AppendInt(nil, int64(i%97), 10), Timestamp: at.Add(time.Duration(i) * time.Millisecond),
					Headers: []kgo.RecordHeader{{Key: "n", Value: strconv.AppendInt(nil, int64(i), 10)}}, Value: fmt.Appendf(nil, "%d/%d", p, i),
				}, nil)
			}
		}
		if err := c.client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		fail := rarely(uint64(time.Now().UnixNano()), 80)
		err := engine.Run(t.Context(), engine.Job{
			Name: out, Parallelism: 2, Source: engine.From(&kafka.Source{Brokers: c.addrs, Topics: []string{in}, Stop: kafka.Latest(), RecordsPerSecond: 20_000}),
			Sink:       failing{&kafka.Sink{Brokers: c.addrs, Topic: out, Partitioning: kafka.PartitionKeep, TransactionTimeout: time.Minute}, fail},
			Checkpoint: engine.Checkpoint{Interval: 20 * time.Millisecond}, Options: quick(), Logger: zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel)),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.once(out, 4, perPartition)
		next := map[int32]int{}
		for _, r := range c.committed(out) {
			i := next[r.Partition]
			next[r.Partition]++
			if string(r.Value) != fmt.Sprintf("%d/%d", r.Partition, i) || !r.Timestamp.Equal(at.Add(time.Duration(i)*time.Millisecond)) ||
				string(r.Key) != strconv.Itoa(i%97) || len(r.Headers) != 1 || string(r.Headers[0].Value) != strconv.Itoa(i) {
				t.Fatalf("record %d of partition %d is %s, %s, %s, %v", i, r.Partition, r.Key, r.Value, r.Timestamp, r.Headers)
			}
		}
	})
}

// failing is naming without the names.
type failing naming

func (s failing) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	w, err := naming(s).NewWriter(ctx)
	if err != nil {
		return nil, err
	}
	return failingWriter{w.(*namingWriter)}, nil
}

type failingWriter struct{ *namingWriter }

func (w failingWriter) Write(ctx context.Context, b *sdk.Batch) error {
	if err := w.sink.fail(w.task, "write"); err != nil {
		return err
	}
	return w.writer.Write(ctx, b)
}
