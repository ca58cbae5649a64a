package engine_test

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

// cpu is the processor time of this process so far. Wall time says little about cost on a shared machine.
func cpu() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// bare is the reader context of a reader that is driven by hand.
type bare struct {
	sdk.ReaderContext
	bell chan struct{}
}

func (b bare) Reader() sdk.ReaderID { return 0 }
func (b bare) Parallelism() int     { return 1 }
func (b bare) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }
func (b bare) Metrics() sdk.Metrics { return sdk.DiscardMetrics }
func (b bare) NotifyAvailable() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// direct takes what the reader emits and looks at every record, on the same goroutine: what the source costs by itself.
type direct struct {
	turn  *sdk.Turn
	batch sdk.Batch
	bytes int64
}

func (d *direct) Emit(rec sdk.Record) bool {
	d.bytes += rec.Size()
	d.turn.Consume(1, rec.Size())
	return true
}

func (d *direct) EmitView(v sdk.View, from int) (int, bool) {
	n := min(v.Len()-from, d.turn.Records())
	d.turn.Consume(n, d.batch.AppendView(v, from, from+n))
	for r := range d.batch.All() {
		d.bytes += r.Size()
	}
	d.batch.Reset()
	return n, true
}

func (d *direct) FinishSplit(sdk.Split) {}

// BenchmarkEngineCost reports what the engine adds to a source per record: processor time of a job less that of the same
// source driven by hand.
func BenchmarkEngineCost(b *testing.B) {
	for _, copied := range []bool{false, true} {
		for _, p := range []int{1, 16, 128, 512} {
			b.Run(fmt.Sprintf("copied=%t/parallelism=%d", copied, p), func(b *testing.B) {
				per := max(int64(b.N)/int64(p), 1)
				cfg := fake.Config{Splits: p, RecordsPerSplit: per, Copied: copied, ChunkSize: 1024, Shared: true}
				n := float64(per) * float64(p)
				b.ReportAllocs()
				sink := blackhole.New(blackhole.Off)
				started := cpu()
				h, err := engine.Start(b.Context(), engine.Job{
					Name: "cost", Parallelism: p, Source: engine.From(must(fake.New(cfg))), Sink: sink,
					Checkpoint: engine.Checkpoint{Interval: time.Second},
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
				job := cpu() - started
				if got := sink.Totals().Records; float64(got) != n {
					b.Fatalf("%d records, want %.0f", got, n)
				}
				b.StopTimer()
				source := driveByHand(b, cfg)
				b.ReportMetric(float64(job)/n, "job-cpu-ns/rec")
				b.ReportMetric(float64(source)/n, "source-cpu-ns/rec")
				b.ReportMetric(float64(job-source)/n, "engine-cpu-ns/rec")
			})
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func driveByHand(b *testing.B, cfg fake.Config) time.Duration {
	src := must(fake.New(cfg))
	started := cpu()
	ctx := bare{bell: make(chan struct{}, 1)}
	r := must(src.NewReader(ctx))
	if err := r.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	var splits []fake.Split
	for i := range cfg.Splits {
		splits = append(splits, fake.Split{Number: i, End: cfg.RecordsPerSplit})
	}
	if err := r.AddSplits(splits); err != nil {
		b.Fatal(err)
	}
	if err := r.(sdk.NoMoreSplitsHandler).NoMoreSplits(); err != nil {
		b.Fatal(err)
	}
	o := engine.DefaultOptions()
	turn := sdk.NewTurn(sdk.TurnLimits{Records: o.PollRecords, Bytes: o.PollBytes, Duration: o.PollSoft}, time.Now, nil)
	out := &direct{turn: turn}
	for {
		turn.Restart()
		status, err := r.Poll(turn, out)
		if err != nil {
			b.Fatal(err)
		}
		if status == sdk.EndOfInput {
			break
		}
		if status == sdk.NothingAvailable {
			<-ctx.bell
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	return cpu() - started
}
