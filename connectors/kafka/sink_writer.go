package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// transactionWriter writes exactly once. Between two barriers there is one transaction:
//
//	Write    begins it with the first record, and fills it
//	Prepare  waits for every acknowledgement and leaves it open, under its id, producer id and epoch
//	Commit   commits it, by the client that wrote it, or by a raw request when that client is gone, or does not know enough
//
// so at any time one transaction is written and some are prepared, each under a transactional id of its own.
type transactionWriter struct {
	sinkLink
	job     string
	task    int
	attempt int64
	// restored is the checkpoint that the job goes on from, for people.
	restored sdk.CheckpointID

	pool    pool
	current *transaction         // being written; nil until the next record
	open    map[key]*transaction // prepared by this writer, and not ended
	rest    map[string]bool      // ids of this task that were committed before the pool was primed

	metrics transactionMetrics
}

type transactionMetrics struct {
	prepared                   sdk.Gauge
	committed, aborted         sdk.Counter
	lost, unknown, lostRecords sdk.Counter
}

var (
	_ sdk.Writer    = (*transactionWriter)(nil)
	_ sdk.Committer = (*transactionWriter)(nil)
	_ sdk.Discarder = (*transactionWriter)(nil)
)

func newTransactionWriter(link sinkLink, ctx sdk.WriterContext) *transactionWriter {
	m := ctx.Metrics()
	w := &transactionWriter{
		sinkLink: link, job: ctx.Job(), task: ctx.Task(), attempt: ctx.Attempt(), restored: ctx.Restored(),
		open: make(map[key]*transaction), rest: make(map[string]bool),
		metrics: transactionMetrics{
			prepared:    m.Gauge("transactions_prepared", "transactions", "Transactions of this task that are prepared and not committed yet."),
			committed:   m.Counter("transactions_committed", "transactions", "Transactions that were committed, also again after a restart."),
			aborted:     m.Counter("transactions_aborted", "transactions", "Transactions that were aborted because their checkpoint never completed."),
			lost:        m.Counter("transactions_lost", "transactions", "Transactions of a completed checkpoint that the cluster had aborted (on_lost: continue)."),
			unknown:     m.Counter("transactions_unknown", "transactions", "Transactions of a completed checkpoint of which nobody knows whether they were committed."),
			lostRecords: m.Counter("records_lost", "records", "Records in lost and unknown transactions."),
		},
	}
	w.pool.name = func(s int) string { return slotID(w.sink.IDPrefix, w.job, w.task, s) }
	return w
}

func (w *transactionWriter) transactions() transactions { return transactions{w.cluster()} }

// Open implements [sdk.Writer]. It takes no transactional id over: what an earlier run prepared must survive until Restore.
func (w *transactionWriter) Open(ctx context.Context) error { return w.sinkLink.open(ctx) }

// Write implements [sdk.Writer].
func (w *transactionWriter) Write(ctx context.Context, batch *sdk.Batch) error {
	if w.current == nil {
		if batch.Len() == 0 {
			return nil
		}
		t, err := w.begin(ctx)
		if err != nil {
			return err
		}
		w.current = t
	}
	t := w.current
	c := newCopier(&w.sink, batch)
	for rec := range batch.All() {
		if t.failed.Load() || ctx.Err() != nil {
			break
		}
		t.slot.client.Produce(ctx, c.copy(rec), t.done)
		t.sent++
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.problem(w.sink.TransactionTimeout)
}

// Flush implements [sdk.Writer]. The engine calls Prepare instead.
func (w *transactionWriter) Flush(ctx context.Context) error {
	if w.current == nil {
		return nil
	}
	return w.current.flush(ctx, w.sink.TransactionTimeout)
}

// Prepare implements [sdk.Committer]. The transaction stays open in the cluster.
func (w *transactionWriter) Prepare(ctx context.Context, checkpoint sdk.CheckpointID) ([]byte, error) {
	t := w.current
	if t == nil || t.sent == 0 {
		return nil, nil
	}
	if err := t.flush(ctx, w.sink.TransactionTimeout); err != nil {
		return nil, err
	}
	id, epoch, err := t.slot.client.ProducerID(ctx)
	if err != nil {
		return nil, fencedError(t.slot.id, time.Since(t.began), w.sink.TransactionTimeout, err)
	}
	p := prepared{
		Job: w.job, Task: w.task, Attempt: w.attempt, Checkpoint: checkpoint,
		ID: t.slot.id, ProducerID: id, Epoch: epoch, Records: t.sent, Began: t.began.UTC(), TimeoutMS: w.sink.TransactionTimeout.Milliseconds(),
		Places: t.witnesses(),
	}
	data, err := p.encode()
	if err != nil {
		return nil, fmt.Errorf("kafka sink: %w", err)
	}
	w.open[p.key()], w.current = t, nil
	w.metrics.prepared.Set(float64(len(w.open)))
	return data, nil
}

// Commit implements [sdk.Committer].
func (w *transactionWriter) Commit(ctx context.Context, data []byte) error {
	p, err := w.sink.decodePrepared(data, w.job)
	if err != nil {
		return sdk.Fatal(err)
	}
	return w.commit(ctx, p)
}

func (w *transactionWriter) commit(ctx context.Context, p *prepared) error {
	k := p.key()
	t := w.open[k]
	if t != nil && t.slot.client != nil {
		if t.known() {
			err := t.slot.client.EndTransaction(ctx, kgo.TryCommit)
			if err == nil {
				w.settle(k, t)
				w.metrics.committed.Add(1)
				return nil
			}
			// The client does not know the outcome. A raw request may be repeated until it is known.
			w.log.Warn("commit by the writing client failed, asking the coordinator", "transactional_id", p.ID, "checkpoint", p.Checkpoint, "error", err)
		}
		t.slot.drop()
	}
	if err := w.commitRaw(ctx, p); err != nil {
		return err
	}
	if t != nil {
		w.settle(k, t)
	} else if !w.pool.primed {
		w.rest[p.ID] = true
	}
	return nil
}

// settle forgets a transaction that is committed.
func (w *transactionWriter) settle(k key, t *transaction) {
	delete(w.open, k)
	w.metrics.prepared.Set(float64(len(w.open)))
	if !w.raises {
		t.slot.drop() // the next client takes the id over, which raises the epoch: no two transactions must share one
	}
	w.pool.committed(t.slot)
}

// Discard implements [sdk.Discarder].
func (w *transactionWriter) Discard(ctx context.Context, data []byte) error {
	p, err := w.sink.decodePrepared(data, w.job)
	if err != nil {
		return sdk.Fatal(err)
	}
	answer, err := w.transactions().end(ctx, p, false)
	if err != nil {
		return err
	}
	if t := w.open[p.key()]; t != nil {
		delete(w.open, p.key())
		w.metrics.prepared.Set(float64(len(w.open)))
		t.slot.drop() // it does not know
		w.pool.give(t.slot)
	}
	if answer == nil {
		w.metrics.aborted.Add(1)
		return nil
	}
	if e := unauthorized(p.ID, answer); e != nil {
		return e
	}
	if !ended(answer) {
		return fmt.Errorf("kafka sink: abort transactional id %q: %w", p.ID, answer)
	}
	if f, err := w.cluster().fateOf(ctx, p); err != nil || f != fateCommitted {
		return err // ended before, by the time limit or by a writer that took the id over
	}
	return fmt.Errorf("kafka sink: checkpoint %d of task %d cannot be discarded: its transaction is committed", p.Checkpoint, p.Task)
}

// Close implements [sdk.Writer]. What is prepared stays open in the cluster.
func (w *transactionWriter) Close(ctx context.Context) (err error) {
	if t := w.current; t != nil {
		if err = w.abort(ctx, t); err == nil {
			w.metrics.aborted.Add(1)
		}
		w.current = nil
	}
	for _, t := range w.open {
		t.slot.drop()
	}
	for _, s := range append(w.pool.free, w.pool.resting...) {
		s.drop()
	}
	w.close()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = fmt.Errorf("kafka sink: a transaction stays open until its time limit or the next start: %w", err)
	}
	return err
}
