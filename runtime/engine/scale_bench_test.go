package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// idle is a source whose readers have a split each and next to nothing to read.
func idle(splits int) fake.Config {
	return fake.Config{Splits: splits, RecordsPerSecond: 0.001, ChunkSize: 1}
}

func start(b *testing.B, job engine.Job) (*engine.Handle, *telemetry.Registry) {
	b.Helper()
	job.Metrics = telemetry.NewRegistry(job.Name, telemetry.Options{})
	job.Sink = blackhole.New(blackhole.Off)
	h, err := engine.Start(b.Context(), job)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		h.Cancel()
		<-h.Done()
	})
	for !h.Ready() {
		runtime.Gosched()
	}
	return h, job.Metrics
}

// BenchmarkCheckpoint is the time of a whole checkpoint, trigger to commit, of readers that have nothing else to do, with a
// state directory on disk.
func BenchmarkCheckpoint(b *testing.B) {
	for _, p := range []int{1, 16, 128, 512} {
		b.Run(fmt.Sprintf("readers=%d", p), func(b *testing.B) {
			h, metrics := start(b, engine.Job{
				Name: "checkpoint", Parallelism: p, Source: engine.From(must(fake.New(idle(p)))),
				Checkpoint: engine.Checkpoint{Dir: b.TempDir(), Interval: engine.Never},
			})
			for b.Loop() {
				if _, err := h.Savepoint(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			d := metrics.Job().Duration.Distribution()
			b.ReportMetric(float64(d.Quantile(0.99))/1e6, "p99-ms")
		})
	}
}

// BenchmarkAdmission is how long senders are in Offer while 512 readers work: assignments, barriers and callbacks of a
// checkpoint every 20 ms.
func BenchmarkAdmission(b *testing.B) {
	const readers = 512
	_, metrics := start(b, engine.Job{
		Name: "admission", Parallelism: readers, Source: engine.From(must(fake.New(fake.Config{Splits: 4 * readers, RecordsPerSecond: 500}))),
		Checkpoint: engine.Checkpoint{Interval: 20 * time.Millisecond},
	})
	before := metrics.Job().Completed.Value()
	for b.Loop() {
		for metrics.Job().Completed.Value() == before {
			time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark waits for real work
		}
		before = metrics.Job().Completed.Value()
	}
	all := metrics.Admission()
	b.ReportMetric(float64(all.Quantile(0.5))/1e3, "p50-us")
	b.ReportMetric(float64(all.Quantile(0.99))/1e3, "p99-us")
	b.ReportMetric(float64(all.Count()), "offers")
}

// BenchmarkRestore is the time from the start of the process's job to the last of 100,000 restored splits being in its
// reader.
func BenchmarkRestore(b *testing.B) {
	const splits = 100_000
	dir := b.TempDir()
	job := engine.Job{
		Name: "restore", Parallelism: 16, Source: engine.From(must(fake.New(idle(splits)))),
		Checkpoint: engine.Checkpoint{Dir: dir, Interval: engine.Never},
	}
	job.Sink = blackhole.New(blackhole.Off)
	stopWhenAssigned(b, job, splits)
	var size int64
	for b.Loop() {
		done := make(chan int64, 1)
		job.Listener.Restored = func(m *protocol.Manifest) {
			n := 0
			for _, r := range m.Readers {
				n += len(r.Splits)
			}
			done <- int64(n)
		}
		h, err := engine.Start(b.Context(), job)
		if err != nil {
			b.Fatal(err)
		}
		for !h.Ready() {
			time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark waits for real work
		}
		if n := <-done; n != splits {
			b.Fatalf("%d splits were restored", n)
		}
		size++
		h.Cancel()
		<-h.Done()
	}
}

func stopWhenAssigned(b *testing.B, job engine.Job, splits int) {
	b.Helper()
	job.Metrics = telemetry.NewRegistry(job.Name, telemetry.Options{})
	h, err := engine.Start(b.Context(), job)
	if err != nil {
		b.Fatal(err)
	}
	for metrics := job.Metrics; metrics.Snapshot().Splits < int64(splits); {
		time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark waits for real work
	}
	h.Stop()
	if _, err := h.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIdleReader is the memory of a reader with its sink task and its part of everything else.
func BenchmarkIdleReader(b *testing.B) {
	measure := func() (heap, stacks uint64) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	const readers = 512
	for b.Loop() {
		heap0, stack0 := measure()
		h, _ := start(b, engine.Job{
			Name: "idle", Parallelism: readers, Source: engine.From(must(fake.New(idle(readers)))), Checkpoint: engine.Checkpoint{Interval: engine.Never},
		})
		heap, stack := measure()
		b.ReportMetric(float64(heap-heap0)/readers, "heap-B/reader")
		b.ReportMetric(float64(stack-stack0)/readers, "stack-B/reader")
		h.Cancel()
		<-h.Done()
	}
}
