package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/sdk"
)

// ledger is a sink with two-phase commit that lives in memory and outlives its writers, as a file system does. It keeps
// what is visible and what is only prepared apart, and fails a test that commits what was discarded.
type ledger struct {
	mu struct {
		sync.Mutex
		prepared map[string][]row
		gone     map[string]string // discarded or committed
		visible  []row
		next     int
	}
	// onWrite, when set, is called before each write, on the sink loop.
	onWrite func(ctx context.Context, task int, records int) error
	// onCommit is called before each commit.
	onCommit func(task int) error
}

type row struct {
	split  sdk.SplitID
	offset int64
	value  string
}

func newLedger() *ledger {
	l := &ledger{}
	l.mu.prepared, l.mu.gone = map[string][]row{}, map[string]string{}
	return l
}

func (l *ledger) Name() string { return "ledger" }

func (l *ledger) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	return &ledgerWriter{l: l, ctx: ctx}, nil
}

type ledgerWriter struct {
	l    *ledger
	ctx  sdk.WriterContext
	rows []row
}

var _ interface {
	sdk.Committer
	sdk.Discarder
} = (*ledgerWriter)(nil)

func (w *ledgerWriter) Open(context.Context) error  { return nil }
func (w *ledgerWriter) Flush(context.Context) error { return nil }
func (w *ledgerWriter) Close(context.Context) error { w.rows = nil; return nil }

func (w *ledgerWriter) Write(ctx context.Context, b *sdk.Batch) error {
	if f := w.l.onWrite; f != nil {
		if err := f(ctx, w.ctx.Task(), b.Len()); err != nil {
			return err
		}
	}
	for r := range b.All() {
		w.rows = append(w.rows, row{r.Split, r.Offset, string(r.Value)})
	}
	return nil
}

func (w *ledgerWriter) Prepare(_ context.Context, id sdk.CheckpointID) ([]byte, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.mu.next++
	name := fmt.Sprintf("%s-%d-%d-%d-%d", w.ctx.Job(), w.ctx.Task(), w.ctx.Attempt(), id, w.l.mu.next)
	w.l.mu.prepared[name], w.rows = w.rows, nil
	return json.Marshal(name)
}

func (w *ledgerWriter) Commit(_ context.Context, data []byte) error {
	if f := w.l.onCommit; f != nil {
		if err := f(w.ctx.Task()); err != nil {
			return err
		}
	}
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return err
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if how := w.l.mu.gone[name]; how == "committed" {
		return nil
	} else if how != "" {
		return sdk.Fatalf("commit of %s, which was %s", name, how)
	}
	rows, ok := w.l.mu.prepared[name]
	if !ok {
		return sdk.Fatalf("commit of the unknown %s", name)
	}
	delete(w.l.mu.prepared, name)
	w.l.mu.gone[name] = "committed"
	w.l.mu.visible = append(w.l.mu.visible, rows...)
	return nil
}

func (w *ledgerWriter) Restore(ctx context.Context, prepared [][]byte) error {
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	for name := range w.l.mu.prepared {
		w.l.mu.gone[name] = "discarded by a restore"
	}
	clear(w.l.mu.prepared)
	return nil
}

func (w *ledgerWriter) Discard(_ context.Context, data []byte) error {
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return err
	}
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	delete(w.l.mu.prepared, name)
	w.l.mu.gone[name] = "discarded"
	return nil
}

func (l *ledger) visible() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]row(nil), l.mu.visible...)
}

// exactlyOnce checks that every record of every split is visible once, and in order within its split when ordered.
func (l *ledger) exactlyOnce(t *testing.T, cfg fake.Config, splits int, ordered bool) {
	t.Helper()
	next := map[sdk.SplitID]int64{}
	seen := map[sdk.SplitID]map[int64]int{}
	disorder := 0
	for _, r := range l.visible() {
		if seen[r.split] == nil {
			seen[r.split] = map[int64]int{}
		}
		seen[r.split][r.offset]++
		if r.offset != next[r.split] {
			disorder++
		}
		next[r.split] = r.offset + 1
	}
	if len(seen) != splits {
		t.Errorf("%d splits are in the output, want %d", len(seen), splits)
	}
	for id, offsets := range seen {
		for i := range cfg.RecordsPerSplit {
			if n := offsets[i]; n != 1 {
				t.Errorf("split %s: record %d is there %d times", id, i, n)
				return
			}
		}
		if n := int64(len(offsets)); n != cfg.RecordsPerSplit {
			t.Errorf("split %s: %d records, want %d", id, n, cfg.RecordsPerSplit)
		}
	}
	if ordered && disorder > 0 {
		t.Errorf("%d records are out of order within their split", disorder)
	}
}
