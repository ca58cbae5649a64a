package docs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

// table stands for a database: rows are staged under an id, durable and invisible, and an id is published in one step.
type table struct {
	mu     sync.Mutex
	staged map[string][]string
	rows   []string
}

func (t *table) stage(id string, rows []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.staged[id] = rows
}

// publish does nothing for an id that is not staged: it was published before.
func (t *table) publish(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, t.staged[id]...)
	delete(t.staged, id)
}

func (t *table) drop(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.staged, id)
}

func (t *table) dropAllOf(job string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.staged {
		if strings.HasPrefix(id, job+"/") { // no job has a slash in its name
			delete(t.staged, id)
		}
	}
}

// tableSink writes values into a table, exactly once.
type tableSink struct{ table *table }

func (s *tableSink) Name() string { return "table" }

func (s *tableSink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	return &tableWriter{table: s.table, job: ctx.Job(), attempt: ctx.Attempt()}, nil
}

// tableWriter is used by one goroutine.
type tableWriter struct {
	table   *table
	job     string
	attempt int64
	rows    []string // since the last Prepare
}

var _ sdk.Committer = (*tableWriter)(nil)

func (w *tableWriter) Open(context.Context) error  { return nil }
func (w *tableWriter) Flush(context.Context) error { return nil } // never called: Prepare is

// Close drops what no checkpoint contains: it is read again.
func (w *tableWriter) Close(context.Context) error {
	w.rows = nil
	return nil
}

func (w *tableWriter) Write(_ context.Context, batch *sdk.Batch) error {
	for rec := range batch.All() {
		w.rows = append(w.rows, string(rec.Value)) // a copy: the record is valid during this step only
	}
	return nil
}

// Prepare makes the rows durable but invisible. The id is unique: no other writer ever has this attempt.
func (w *tableWriter) Prepare(_ context.Context, checkpoint sdk.CheckpointID) ([]byte, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	id := fmt.Sprintf("%s/%d/%d", w.job, w.attempt, checkpoint)
	w.table.stage(id, w.rows)
	w.rows = nil
	return []byte(id), nil
}

// Commit may come again, from another writer, after a crash.
func (w *tableWriter) Commit(_ context.Context, prepared []byte) error {
	w.table.publish(string(prepared))
	return nil
}

// Restore runs before anything is written: finish what the checkpoint holds, drop what it does not.
func (w *tableWriter) Restore(ctx context.Context, prepared [][]byte) error {
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	w.table.dropAllOf(w.job)
	return nil
}

// Discard drops what was prepared for a checkpoint that never completed, while other tasks go on.
func (w *tableWriter) Discard(_ context.Context, prepared []byte) error {
	w.table.drop(string(prepared))
	return nil
}

// A reader fails in the middle; every record is in the table once all the same.
func Example_exactlyOnceSink() {
	source, err := fake.New(fake.Config{Splits: 3, RecordsPerSplit: 1000, Faults: fake.Faults{
		Script: []fake.Fault{{Kind: fake.FailEmit, Split: 1, Record: 500}},
	}})
	if err != nil {
		report(err)
		return
	}
	sink := &tableSink{table: &table{staged: map[string][]string{}}}
	err = engine.Run(context.Background(), engine.Job{Name: "rows", Parallelism: 3, Source: engine.From(source), Sink: sink})
	different := map[string]bool{}
	for _, row := range sink.table.rows {
		different[row] = true
	}
	report(err, len(sink.table.rows), len(different))
	// Output: <nil> 3000 3000
}
