package kafka

import (
	"context"
	"fmt"
	"time"
)

// pool lends the transactional ids of one task. A transaction stays open until its checkpoint has completed, and the next one begins
// before that, so a task needs several.
//
// The id whose transaction was committed last rests until the next commit: while its checkpoint is the newest one, a crash makes
// a later run commit it again, and the coordinator answers that only as long as the id was not used since. (When it was, after
// a restart, the log answers: see fateOf.)
type pool struct {
	name    func(slot int) string
	made    int     // slots that exist
	free    []*slot // the one that rested longest first
	resting []*slot
	primed  bool
}

// prime finds out, before the first transaction of a writer, which ids of the task the cluster knows, and ends what is open under them:
// the writer before this one may have left it, and nobody will. What this writer was told to commit rests.
func (p *pool) prime(ctx context.Context, c transactions, timeout time.Duration, rest map[string]bool) error {
	p.free, p.resting = nil, nil // an earlier attempt may have failed half way
	ids := make([]string, maxSlots)
	for i := range ids {
		ids[i] = p.name(i)
	}
	known, err := c.describe(ctx, ids)
	if err != nil {
		return err
	}
	p.made = restingSlots + 2
	for i, id := range ids {
		if _, exists := known[id]; exists {
			p.made = max(p.made, i+1)
		}
	}
	var last []*slot
	for _, id := range ids[:p.made] {
		s := &slot{id: id}
		switch state := known[id].state; {
		case rest[id]:
			p.resting = append(p.resting, s)
		case state == stateCommitted, state == stateCommitting:
			last = append(last, s)
		case state == stateOngoing:
			if err := c.fence(ctx, id, timeout); err != nil {
				return err
			}
			fallthrough
		default:
			p.free = append(p.free, s)
		}
	}
	p.free = append(p.free, last...)
	p.primed = true
	return nil
}

const (
	// These may be of an id which another task's Restore has just committed: it is used last.
	stateCommitting = "PrepareCommit"
	stateCommitted  = "CompleteCommit"
	// restingSlots is how many ids rest as long as checkpoints complete.
	restingSlots = 1
)

// take lends the id that was not used for the longest time.
func (p *pool) take() (*slot, error) {
	if len(p.free) == 0 {
		if p.made == maxSlots {
			return nil, fmt.Errorf("%w: %d checkpoints in a row were prepared, and none of them completed: see why checkpoints abort; the job goes on from its last completed one",
				ErrTooManyPrepared, maxSlots-restingSlots)
		}
		p.free = append(p.free, &slot{id: p.name(p.made)})
		p.made++
	}
	s := p.free[0]
	p.free = p.free[1:]
	return s, nil
}

// committed lets s rest, and gives back what rested.
func (p *pool) committed(s *slot) {
	p.free = append(p.free, p.resting...)
	p.resting = []*slot{s}
}

// give takes back a slot whose transaction was not committed.
func (p *pool) give(s *slot) { p.free = append(p.free, s) }

// begin takes a slot and opens a transaction under it. Nothing is known to the cluster before the first record.
func (w *transactionWriter) begin(ctx context.Context) (*transaction, error) {
	if !w.pool.primed {
		if err := w.stillOwner(ctx); err != nil { // before prime takes anything from whoever it is
			return nil, err
		}
		if err := w.pool.prime(ctx, w.transactions(), w.sink.TransactionTimeout, w.rest); err != nil {
			return nil, err
		}
	}
	s, err := w.pool.take()
	if err != nil {
		return nil, err
	}
	err = w.start(ctx, s)
	if err == nil {
		err = w.stillOwner(ctx) // after the id was taken, see owners
	}
	if err != nil {
		s.drop()
		w.pool.give(s)
		return nil, err
	}
	return &transaction{slot: s, began: time.Now(), places: make(map[place]*written)}, nil
}

func (w *transactionWriter) start(ctx context.Context, s *slot) (err error) {
	if s.client == nil {
		if s.client, err = w.producer(s.id); err != nil {
			return err
		}
	}
	// Asked for here, and not left to the client, whose way to begin knows no ctx.
	answer, err := w.transactions().settled(ctx, func() (int16, error) {
		_, _, err := s.client.ProducerID(ctx)
		return 0, err
	})
	if err == nil {
		err = initError(s.id, w.sink.TransactionTimeout, answer)
	}
	if err != nil {
		return err
	}
	return s.client.BeginTransaction()
}
