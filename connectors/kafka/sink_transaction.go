package kafka

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slot is one transactional id of the task, and the client that writes under it. It holds one transaction at a time.
type slot struct {
	id string
	// client is nil before the first transaction, and again after an end of which the client does not know the outcome.
	client *kgo.Client
}

func (s *slot) drop() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// transaction is one that this writer began. Its fields belong to the sink loop, but for what the client's promises fill in.
type transaction struct {
	slot  *slot
	began time.Time
	sent  int64 // records handed to the client

	failed atomic.Bool // fail is set: cheap to look at for every record
	mu     sync.Mutex
	fail   error              // why the first record that failed did
	record *kgo.Record        // that record
	places map[place]*written // all that was acknowledged
	last   *written           // saves the map for records that follow each other
}

// done is the promise of every record. The client calls it from one goroutine at a time.
func (t *transaction) done(r *kgo.Record, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && t.fail == nil:
		t.fail, t.record = err, r
		t.failed.Store(true)
	case err != nil, r.Offset < 0: // or written, but the broker did not say where
	default:
		t.wrote(r)
	}
}

func (t *transaction) wrote(r *kgo.Record) {
	w := t.last
	if w == nil || w.Partition != r.Partition || w.Topic != r.Topic {
		at := place{r.Topic, r.Partition}
		if w = t.places[at]; w == nil {
			w = &written{Topic: r.Topic, Partition: r.Partition, First: r.Offset, Last: r.Offset}
			t.places[at] = w
		}
		t.last = w
	}
	w.First, w.Last = min(w.First, r.Offset), max(w.Last, r.Offset)
}

// problem explains why the transaction cannot be prepared any more; nil while it can.
func (t *transaction) problem(timeout time.Duration) error {
	if !t.failed.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := unauthorized(t.slot.id, t.fail); e != nil {
		return e
	}
	if ended(t.fail) {
		return fencedError(t.slot.id, time.Since(t.began), timeout, t.fail)
	}
	return refused(t.record, t.fail)
}

// flush waits until everything is acknowledged.
func (t *transaction) flush(ctx context.Context, timeout time.Duration) error {
	if err := t.slot.client.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return t.problem(timeout)
}

// witnesses are the places to store, in order.
func (t *transaction) witnesses() []written {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]written, 0, len(t.places))
	for _, w := range t.places {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all[:min(len(all), maxPlaces)]
}

// known reports that the client has noted all partitions which the transaction was written to. Until then it must not end it: the client
// (franz-go 1.22) looks through the partitions that it has noted for those with records of this transaction, and where it finds none there is
// nothing to commit for it, so that it aborts, or does nothing at all, and answers no error. A partition is noted by the goroutine that
// learned of it, which first sends the records that waited for that, and may be a moment late: on a busy machine all of a short
// transaction takes place in that moment.
func (t *transaction) known() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range t.places {
		if leader, _, _ := t.slot.client.PartitionLeader(at.topic, at.partition); leader < 0 {
			return false
		}
	}
	return len(t.places) > 0
}

// abort ends the transaction, as far as it can within ctx, and takes the client away. What stays open is aborted when the id is taken over, or by the
// cluster when its time is over.
func (w *transactionWriter) abort(ctx context.Context, t *transaction) error {
	defer t.slot.drop()
	if err := t.slot.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	id, epoch, err := t.slot.client.ProducerID(ctx)
	if err == nil {
		var answer error
		if answer, err = w.transactions().end(ctx, &prepared{ID: t.slot.id, ProducerID: id, Epoch: epoch}, false); err == nil {
			err = answer
		}
	}
	if ended(err) {
		return nil // by somebody else, or it had not begun
	}
	return err
}
