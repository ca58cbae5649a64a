package base

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// ready answers the same chunk for ever, so that a benchmark measures the reader and not the making of data.
type ready struct{ chunks []Chunk[num] }

func (r *ready) Fetch(context.Context) (Fetched[num], error) {
	return Fetched[num]{Chunks: r.chunks}, nil
}
func (r *ready) HandleSplits(Change[at]) error { return nil }
func (r *ready) Close() error                  { return nil }

// counter is an output that takes from the turn and keeps nothing.
type counter struct {
	turn *sdk.Turn
	n    int
}

func (c *counter) Emit(rec sdk.Record) bool {
	c.n++
	c.turn.Consume(1, rec.Size())
	return true
}

func (c *counter) EmitView(v sdk.View, from int) (int, bool) {
	n := min(v.Len()-from, c.turn.Records())
	c.n += n
	c.turn.Consume(n, v.Bytes(from, from+n))
	return n, true
}

func (c *counter) FinishSplit(sdk.Split) {}

// benchmarkPoll measures turns of 64 records over chunks of 1024; ns/op is per record.
func benchmarkPoll(b *testing.B, cfg Config[num, at, at]) {
	chunk := Chunk[num]{Split: "a", Elements: make([]num, 1024), Bytes: 1024 * 100}
	cfg.Fetcher = func() (SplitReader[num, at], error) { return &ready{[]Chunk[num]{chunk}}, nil }
	ctx := newLent()
	r, err := NewReader(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.AddSplits([]at{{"a", 0}}); err != nil {
		b.Fatal(err)
	}
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
	out := &counter{turn: turn}
	b.ReportAllocs()
	b.ResetTimer()
	for out.n < b.N {
		turn.Restart()
		status, err := r.Poll(turn, out)
		if err != nil {
			b.Fatal(err)
		}
		if status == sdk.NothingAvailable {
			<-ctx.doorbell
		}
	}
	b.StopTimer()
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkPollEmit(b *testing.B) { benchmarkPoll(b, Config[num, at, at]{Emit: emitNum}) }

// BenchmarkPollEmitChunk boxes a view for each turn, one allocation in 64 records.
func BenchmarkPollEmitChunk(b *testing.B) {
	benchmarkPoll(b, Config[num, at, at]{EmitChunk: emitNumbers})
}

func BenchmarkPollEmitWithRateLimit(b *testing.B) {
	benchmarkPoll(b, Config[num, at, at]{Emit: emitNum, RecordsPerSecond: 1e12})
}
