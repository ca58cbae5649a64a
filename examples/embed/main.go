// Command embed runs the engine inside a program: it reads a source, and the sink is the program's own code. Instead of
// the fake source it could be given a Kafka one; nothing else changes.
//
//	go run ./examples/embed
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	total, err := run(ctx, 3, 10_000)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
	fmt.Printf("summed %d payload bytes of 30,000 records\n", total)
}

// run reads splits of records records each, and returns the sum that the sink made.
func run(ctx context.Context, splits int, records int64) (int64, error) {
	source, err := fake.New(fake.Config{Splits: splits, RecordsPerSplit: records})
	if err != nil {
		return 0, err
	}
	var sum summing
	err = engine.Run(ctx, engine.Job{
		Name:        "embedded",
		Parallelism: 2,
		Source:      engine.From(source),
		Sink:        &sum,
		Checkpoint:  engine.Checkpoint{Interval: 5 * time.Second}, // Dir: "state" would survive the process
	})
	return sum.bytes.Load(), err
}

// summing is a sink: it makes one writer per task. What it gets is at least once, because it has no two-phase commit; with
// the methods of sdk.Committer it would be exactly once.
type summing struct{ bytes atomic.Int64 }

func (s *summing) Name() string { return "summing" }

func (s *summing) NewWriter(sdk.WriterContext) (sdk.Writer, error) { return &writer{sum: s}, nil }

// writer is used by one goroutine.
type writer struct {
	sum     *summing
	pending int64
}

func (w *writer) Open(context.Context) error  { return nil }
func (w *writer) Close(context.Context) error { return nil }

func (w *writer) Write(_ context.Context, batch *sdk.Batch) error {
	for rec := range batch.All() {
		w.pending += rec.Size()
	}
	return nil
}

// Flush is called at each checkpoint: what was written before it has to be safe now.
func (w *writer) Flush(context.Context) error {
	w.sum.bytes.Add(w.pending)
	w.pending = 0
	return nil
}
