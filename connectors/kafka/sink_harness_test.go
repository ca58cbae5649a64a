package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// target is a cluster to write to. Every test has a job and a topic of its own in it.
type target struct {
	t     *testing.T
	addrs []string
	real  bool
	job   string
	sink  Sink
	// attempts numbers the writers.
	attempts int64
}

var targets atomic.Int64

// fresh makes a topic and a job for one test.
func (g *target) fresh(t *testing.T, partitions int32) *target {
	t.Helper()
	n := targets.Add(1)
	name := fmt.Sprintf("sink-%d-%d", os.Getpid(), n) // the cluster may outlive this process
	f := &target{t: t, addrs: g.addrs, real: g.real, job: name, sink: Sink{Brokers: g.addrs, Topic: name, Linger: LingerNone, TransactionTimeout: time.Minute}}
	f.createTopic(name, partitions, nil)
	return f
}

func (g *target) createTopic(name string, partitions int32, configs map[string]*string) {
	g.t.Helper()
	_, err := g.admin().CreateTopic(g.t.Context(), partitions, 1, configs, name)
	g.must(err)
	g.eventually("known to the broker", func() bool {
		topics, err := cluster{g.client(), ""}.topics(g.t.Context(), []string{name})
		g.must(err)
		return topics[name].err == nil
	})
}

func (g *target) client(options ...kgo.Opt) *kgo.Client {
	g.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(g.addrs...), kgo.DisableClientMetrics()}, options...)...)
	g.must(err)
	g.t.Cleanup(c.Close)
	return c
}

func (g *target) admin() *kadm.Client { return kadm.NewClient(g.client()) }

func (g *target) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

type lentWriter struct {
	job     string
	task    int
	attempt int64
	metrics *instruments
}

func (c lentWriter) Job() string          { return c.job }
func (c lentWriter) Task() int            { return c.task }
func (c lentWriter) Parallelism() int     { return 4 }
func (c lentWriter) Attempt() int64       { return c.attempt }
func (c lentWriter) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }
func (c lentWriter) Metrics() sdk.Metrics { return c.metrics }

func (c lentWriter) Restored() sdk.CheckpointID { return 0 }

// task is a writer under test.
type task struct {
	*transactionWriter
	g       *target
	metrics *instruments
}

// writer makes and opens a writer. It is killed when the test ends, unless it was closed.
func (g *target) writer(number int) *task {
	g.t.Helper()
	w := g.unopened(number)
	g.must(w.Open(g.t.Context()))
	return w
}

func (g *target) unopened(number int) *task {
	g.t.Helper()
	g.attempts++
	metrics := newInstruments()
	w, err := g.sink.NewWriter(lentWriter{g.job, number, g.attempts, metrics})
	g.must(err)
	tx := &task{w.(*transactionWriter), g, metrics}
	g.t.Cleanup(tx.kill)
	return tx
}

// kill leaves everything in the cluster as a process does that is killed.
func (w *task) kill() {
	if w.current != nil {
		w.current.slot.drop()
		w.current = nil
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.Close(done)
}

// write writes the records from..to-1.
func (w *task) write(from, to int) {
	w.g.t.Helper()
	w.g.must(w.Write(w.g.t.Context(), counting(from, to)))
}

func counting(from, to int) *sdk.Batch {
	var b sdk.Batch
	for i := from; i < to; i++ {
		b.Append(&sdk.Record{Topic: "source", Offset: int64(i), Key: fmt.Appendf(nil, "key %d", i%7), Value: strconv.AppendInt(nil, int64(i), 10)})
	}
	return &b
}

func (w *task) prepare(id sdk.CheckpointID) []byte {
	w.g.t.Helper()
	data, err := w.Prepare(w.g.t.Context(), id)
	w.g.must(err)
	if data == nil {
		w.g.t.Fatal("nothing was prepared")
	}
	return data
}

func (w *task) commitAll(blobs ...[]byte) {
	w.g.t.Helper()
	for _, b := range blobs {
		w.g.must(w.Commit(w.g.t.Context(), b))
	}
}

func (w *task) restore(blobs ...[]byte) {
	w.g.t.Helper()
	w.g.must(w.Restore(w.g.t.Context(), blobs))
}

// committed reads what a reader of committed records sees, and fails unless it sees everything up to the end of the log: an
// open transaction would hide what comes after it.
func (g *target) committed() []*kgo.Record {
	g.t.Helper()
	var all []*kgo.Record
	g.eventually("without an open transaction that hides the end", func() bool { // a commit is answered before all partitions know
		seen, open := g.visible()
		all = seen
		return !open
	})
	return all
}

// visible reads what a reader of committed records sees, and reports whether an open transaction hides more.
func (g *target) visible() (all []*kgo.Record, open bool) {
	g.t.Helper()
	admin := g.admin()
	defer admin.Close()
	stable, err := admin.ListCommittedOffsets(g.t.Context(), g.sink.Topic)
	g.must(errors.Join(err, stable.Error()))
	ends, err := admin.ListEndOffsets(g.t.Context(), g.sink.Topic)
	g.must(errors.Join(err, ends.Error()))
	starts, err := admin.ListStartOffsets(g.t.Context(), g.sink.Topic)
	g.must(errors.Join(err, starts.Error()))
	left := make(map[int32]int64)
	consume := make(map[int32]kgo.Offset)
	stable.Each(func(o kadm.ListedOffset) {
		end, _ := ends.Lookup(o.Topic, o.Partition)
		start, _ := starts.Lookup(o.Topic, o.Partition)
		open = open || end.Offset > o.Offset
		if o.Offset > start.Offset {
			left[o.Partition] = o.Offset
			consume[o.Partition] = kgo.NewOffset().At(start.Offset)
		}
	})
	if len(left) == 0 {
		return nil, open
	}
	c := g.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{g.sink.Topic: consume}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	defer c.Close()
	limit := 30 * time.Second
	if open {
		limit = 5 * time.Second // below an open transaction there may be nothing but aborted records, which never come
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), limit)
	defer cancel()
	for len(left) > 0 {
		fetches := c.PollFetches(ctx)
		if open && ctx.Err() != nil {
			break
		}
		g.must(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all, open
}

// wantNumbers checks that exactly the given ranges [from, to) are visible, each number once.
func (g *target) wantNumbers(ranges ...[2]int) {
	g.t.Helper()
	g.wantThese(g.committed(), ranges...)
}

func (g *target) wantThese(records []*kgo.Record, ranges ...[2]int) {
	g.t.Helper()
	var got, want []int
	for _, r := range records {
		n, err := strconv.Atoi(string(r.Value))
		g.must(err)
		got = append(got, n)
	}
	for _, r := range ranges {
		for n := r[0]; n < r[1]; n++ {
			want = append(want, n)
		}
	}
	slices.SortFunc(got, cmp.Compare)
	if !slices.Equal(got, want) {
		g.t.Fatalf("visible are %d records %v, want %v", len(got), shorten(got), ranges)
	}
}

func shorten(n []int) []int { return n[:min(len(n), 50)] }

// eventually waits until what is asked for is so.
func (g *target) eventually(what string, is func() bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeoutCause(g.t.Context(), 30*time.Second, errors.New("never "+what))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			g.t.Fatal(context.Cause(ctx))
		}
	}
}
