package kafka

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// plainWriter writes at least once: idempotently, so that the client's own retries repeat nothing, and without transactions.
type plainWriter struct {
	sinkLink
	client *kgo.Client

	failed atomic.Bool
	mu     sync.Mutex
	fail   error       // of the first record that failed
	record *kgo.Record // that record
}

var _ sdk.Writer = (*plainWriter)(nil)

// Open implements [sdk.Writer].
func (w *plainWriter) Open(ctx context.Context) (err error) {
	if err := w.open(ctx); err != nil {
		return err
	}
	w.client, err = w.producer("")
	return err
}

// Write implements [sdk.Writer].
func (w *plainWriter) Write(ctx context.Context, batch *sdk.Batch) error {
	c := newCopier(&w.sink, batch)
	for rec := range batch.All() {
		if w.failed.Load() || ctx.Err() != nil {
			break
		}
		w.client.Produce(ctx, c.copy(rec), w.done)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.problem()
}

func (w *plainWriter) done(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail == nil {
		w.fail, w.record = err, r
		w.failed.Store(true)
	}
}

func (w *plainWriter) problem() error {
	if !w.failed.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := unauthorized("", w.fail); e != nil {
		return e
	}
	return refused(w.record, w.fail)
}

// Flush implements [sdk.Writer].
func (w *plainWriter) Flush(ctx context.Context) error {
	if err := w.client.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return w.problem()
}

// Close implements [sdk.Writer]. What is buffered is dropped: it comes again after the last checkpoint.
func (w *plainWriter) Close(context.Context) error {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
	w.close()
	return nil
}
