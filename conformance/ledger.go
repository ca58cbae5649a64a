package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
)

// ledger is a sink with two-phase commit that outlives its writers and its jobs, as a file system does. What was prepared and not
// committed is invisible.
type ledger struct {
	textOf func(*sdk.Record) (string, bool)

	mu struct {
		sync.Mutex
		prepared map[string][]string
		visible  []string
		next     int
		changed  chan struct{} // closed and replaced with each commit
	}
}

func newLedger(textOf func(*sdk.Record) (string, bool)) *ledger {
	l := &ledger{textOf: textOf}
	l.mu.prepared = map[string][]string{}
	l.mu.changed = make(chan struct{})
	return l
}

// Name implements [sdk.Sink].
func (l *ledger) Name() string { return "conformance" }

// NewWriter implements [sdk.Sink].
func (l *ledger) NewWriter(sdk.WriterContext) (sdk.Writer, error) {
	return &ledgerWriter{ledger: l}, nil
}

// texts answers what is visible.
func (l *ledger) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.visible)
}

// grown answers how much is visible, and what tells that there is more.
func (l *ledger) grown() (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.visible), l.mu.changed
}

// ledgerWriter is one attempt of a sink task.
type ledgerWriter struct {
	ledger *ledger
	texts  []string
}

var _ sdk.Committer = (*ledgerWriter)(nil)

func (w *ledgerWriter) Open(context.Context) error  { return nil }
func (w *ledgerWriter) Flush(context.Context) error { return nil }
func (w *ledgerWriter) Close(context.Context) error { return nil }

func (w *ledgerWriter) Write(_ context.Context, batch *sdk.Batch) error {
	for rec := range batch.All() {
		if text, ok := w.ledger.textOf(rec); ok {
			w.texts = append(w.texts, text)
		}
	}
	return nil
}

func (w *ledgerWriter) Prepare(context.Context, sdk.CheckpointID) ([]byte, error) {
	if len(w.texts) == 0 {
		return nil, nil
	}
	l := w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.next++
	name := fmt.Sprint(l.mu.next)
	l.mu.prepared[name], w.texts = w.texts, nil
	return []byte(name), nil
}

// Commit may be repeated: what is not prepared any more has been committed.
func (w *ledgerWriter) Commit(_ context.Context, prepared []byte) error {
	l := w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.visible = append(l.mu.visible, l.mu.prepared[string(prepared)]...)
	delete(l.mu.prepared, string(prepared))
	close(l.mu.changed)
	l.mu.changed = make(chan struct{})
	return nil
}

func (w *ledgerWriter) Restore(ctx context.Context, prepared [][]byte) error {
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	clear(w.ledger.mu.prepared)
	return nil
}
