package simulation

import (
	"context"

	"github.com/penstock-dev/penstock/sdk"
)

// sink is the ledger as one life sees it.
type sink struct{ of *life }

func (s sink) Name() string { return "ledger" }

func (s sink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	return &writer{of: s.of, ledger: s.of.world.ledger, ctx: ctx}, nil
}

// writer is one sink task attempt. What it wrote since its last Prepare is lost with it.
type writer struct {
	of     *life
	ledger *ledger
	ctx    sdk.WriterContext
	rows   []ledgerRow
	closed bool
}

var (
	_ sdk.Committer = (*writer)(nil)
	_ sdk.Discarder = (*writer)(nil)
)

// call makes one call with its faults; effect runs under the ledger's lock.
func (w *writer) call(ctx context.Context, place Place, effect func() error) error {
	return w.of.chaos.around(ctx, place, w.ctx.Task(), func() error { return w.ledger.under(w.of, effect) })
}

func (w *writer) Open(ctx context.Context) error {
	return w.call(ctx, SinkOpen, func() error {
		w.ledger.opened(w.ctx.Attempt(), "a writer")
		return nil
	})
}

func (w *writer) Write(ctx context.Context, b *sdk.Batch) error {
	return w.call(ctx, SinkWrite, func() error {
		for r := range b.All() {
			row, err := w.ledger.rowOf(r)
			if err != nil {
				w.of.world.history.violate("sink task %d: %v", w.ctx.Task(), err)
			}
			w.rows = append(w.rows, row)
		}
		return nil
	})
}

func (w *writer) Flush(context.Context) error {
	w.of.world.history.violate("Flush of a committer")
	return nil
}

func (w *writer) Prepare(ctx context.Context, id sdk.CheckpointID) (data []byte, err error) {
	w.of.striker.prepare(ctx, id)
	err = w.call(ctx, SinkPrepare, func() error {
		data = w.ledger.prepare(w.of, w.ctx.Task(), w.ctx.Attempt(), id, w.rows)
		w.rows = nil
		return nil
	})
	return data, err
}

func (w *writer) Commit(ctx context.Context, prepared []byte) error {
	return w.call(ctx, SinkCommit, func() error { return w.ledger.commit(string(prepared)) })
}

// Restore may die or fail between any two of its steps.
func (w *writer) Restore(ctx context.Context, prepared [][]byte) error {
	for _, p := range prepared {
		if err := w.call(ctx, SinkRestore, func() error { return w.ledger.commit(string(p)) }); err != nil {
			return err
		}
	}
	return w.call(ctx, SinkRestore, func() error { w.ledger.discardRest(); return nil })
}

func (w *writer) Discard(ctx context.Context, prepared []byte) error {
	return w.call(ctx, SinkDiscard, func() error { w.ledger.discard(string(prepared), "discard"); return nil })
}

func (w *writer) Close(ctx context.Context) error {
	if w.closed {
		w.of.world.history.violate("a writer of task %d is closed twice", w.ctx.Task())
	}
	w.closed = true
	return w.call(ctx, SinkClose, func() error { w.rows = nil; return nil })
}
