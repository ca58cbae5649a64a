package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/penstock-dev/penstock/sdk"
)

// commitRaw commits a transaction by what the checkpoint knows of it. When the coordinator does not confirm that, the log
// decides.
func (w *transactionWriter) commitRaw(ctx context.Context, p *prepared) error {
	answer, err := w.transactions().end(ctx, p, true)
	if err != nil {
		return err
	}
	if answer == nil {
		w.metrics.committed.Add(1)
		return nil
	}
	if e := unauthorized(p.ID, answer); e != nil {
		return e
	}
	if !ended(answer) {
		return fmt.Errorf("kafka sink: commit transactional id %q of checkpoint %d: %w", p.ID, p.Checkpoint, answer)
	}
	found, err := w.cluster().fateOf(ctx, p)
	if err != nil {
		return err
	}
	if found == fateUnknown && errors.Is(answer, kerr.InvalidTxnState) {
		found = fateAborted // what the coordinator answers when it has aborted this very transaction
	}
	switch found {
	case fateCommitted:
		w.metrics.committed.Add(1)
		return nil
	case fateOpen:
		return fmt.Errorf("kafka sink: transactional id %q of checkpoint %d: the coordinator does not commit it, and its records are not decided yet: %w", p.ID, p.Checkpoint, answer)
	case fateDeleted:
		w.metrics.unknown.Add(1)
		w.log.Warn("records of a completed checkpoint were deleted from their topic since; whether they had been committed before is not known any more",
			"checkpoint", p.Checkpoint, "task", p.Task, "records", p.Records, "transactional_id", p.ID, "begun", p.Began)
		return nil
	case fateAborted:
		return w.lost(p.failure(ErrLost, "the cluster aborted the transaction before its commit: the job was down, or could not reach the cluster, for longer than transaction_timeout"))
	case fateUnknown:
	}
	return w.lost(p.failure(ErrFateUnknown, fmt.Sprintf("the coordinator answers %v, and at their place in the topic there is something else by now (compaction, or the topic was created anew)", answer)))
}

// lost applies the policy.
func (w *transactionWriter) lost(e *TransactionError) error {
	if w.sink.OnLost != LostContinue {
		return sdk.Fatal(e)
	}
	if errors.Is(e, ErrLost) {
		w.metrics.lost.Add(1)
	} else {
		w.metrics.unknown.Add(1)
	}
	w.metrics.lostRecords.Add(e.Records)
	w.log.Error("going on without records of a completed checkpoint", "error", e)
	return nil
}

// Restore implements [sdk.Committer]. First it commits, then it takes over every other transactional id that a run of this job ever
// used, so that what is open under them is aborted and a writer that is still alive somewhere cannot write any more.
//
// Transactions that are still open are committed last: when one of the others turns out to be lost, nothing has been made visible
// yet that a restore of the checkpoint before would repeat.
func (w *transactionWriter) Restore(ctx context.Context, blobs [][]byte) error {
	if err := w.own(ctx); err != nil {
		return err
	}
	c := w.transactions()
	all := make([]*prepared, 0, len(blobs))
	ids := make([]string, 0, len(blobs))
	for _, data := range blobs {
		if len(data) == 0 {
			continue
		}
		p, err := w.sink.decodePrepared(data, w.job)
		if err != nil {
			return sdk.Fatal(err)
		}
		all, ids = append(all, p), append(ids, p.ID)
	}
	now, err := c.describe(ctx, ids)
	if err != nil {
		return err
	}
	if err := w.notOlder(all, now); err != nil {
		return err
	}
	var open []*prepared
	for _, p := range all {
		if s := now[p.ID]; s == (standing{stateOngoing, p.ProducerID, p.Epoch}) {
			open = append(open, p)
			continue
		}
		if err := w.commit(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range open {
		if err := w.commit(ctx, p); err != nil {
			return err
		}
	}
	return w.sweep(ctx, c, all)
}

// notOlder looks for transactions that were committed after the restored checkpoint. A commit follows its checkpoint, so there are none
// when that is the newest one. It sees an id of the checkpoint under which another transaction was committed since, so not before
// the ids have gone round: what is a few checkpoints older may pass.
func (w *transactionWriter) notOlder(all []*prepared, now map[string]standing) error {
	for _, p := range all {
		if s := now[p.ID]; !s.committedAfter(p, w.raises) {
			continue
		}
		err := fmt.Errorf("%w: checkpoint %d was restored, and transactional id %q of it has committed another transaction since: "+
			"what was written after it will be read and written again. Restore the newest checkpoint (penstock checkpoints list), or accept records that are there twice, with on_older: continue",
			ErrOlder, w.restored, p.ID)
		if w.sink.OnOlder != OlderContinue {
			return sdk.Fatal(err)
		}
		w.log.Warn("going on from an older checkpoint: records will be there twice", "error", err)
		return nil
	}
	return nil
}

// lastEpoch is from where on the end of a transaction may bring a new producer id, which begins with epoch 0.
const lastEpoch = math.MaxInt16 - 2

// committedAfter reports that the last transaction under p's id is a younger one, and committed. Where ends raise the epoch, that of p
// itself did so by one.
func (s standing) committedAfter(p *prepared, raises bool) bool {
	if s.state != stateCommitted && s.state != stateCommitting || p.Epoch >= lastEpoch {
		return false
	}
	own := p.Epoch
	if raises {
		own++
	}
	return s.producerID != p.ProducerID || s.epoch > own
}

// sweep takes over the ids of the job, but for those of prepared whose last transaction is the prepared one: the commit has ended
// it, and an untouched id still confirms that when it is asked again after another crash.
func (w *transactionWriter) sweep(ctx context.Context, c transactions, all []*prepared) error {
	ids, err := c.list(ctx, w.sink.IDPrefix, w.job)
	if err != nil {
		return err
	}
	keep := make([]string, len(all))
	for i, p := range all {
		keep[i] = p.ID
	}
	now, err := c.describe(ctx, keep)
	if err != nil {
		return err
	}
	untouched := make(map[string]bool, len(all))
	for _, p := range all {
		if s := now[p.ID]; s.producerID == p.ProducerID && (s.epoch == p.Epoch || s.epoch == p.Epoch+1) && s.state != stateOngoing {
			untouched[p.ID] = true
		}
	}
	due := ids[:0]
	for _, id := range ids {
		if !untouched[id] {
			due = append(due, id)
		}
	}
	return w.fenceAll(ctx, c, due)
}

// fencesAtOnce bounds the requests that are under way together.
const fencesAtOnce = 8

func (w *transactionWriter) fenceAll(ctx context.Context, c transactions, ids []string) error {
	work := make(chan string)
	problems := make(chan error, fencesAtOnce)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range min(fencesAtOnce, len(ids)) {
		wg.Go(func() {
			for id := range work {
				if err := c.fence(ctx, id, w.sink.TransactionTimeout); err != nil {
					problems <- err // the first of this worker, which then ends
					cancel()
					return
				}
			}
		})
	}
	for _, id := range ids {
		select {
		case work <- id:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	select {
	case err := <-problems:
		return err
	default:
		return context.Cause(ctx)
	}
}
