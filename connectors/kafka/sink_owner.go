package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/sdk"
)

// ErrTaken marks a job that goes on in another process: this one was taken for dead, and must not write any more.
var ErrTaken = errors.New("kafka: another process has taken the job over")

// owners is what this process holds of each job: the standing of the job's own transactional id, under which nothing is ever written.
//
// A process that is stopped for long, and whose job goes on elsewhere from a copy of its state, finds its transactions fenced when it
// wakes up. That alone looks like a transaction that was open for too long, and a task that restarts would take the ids back. So
// every restore of the whole sink first raises the epoch of the job's id, and only then takes over what it finds; and a task that has
// taken an id looks whether the epoch is still the one of its process. Whichever came first is seen by the other: an id that was
// taken before the others were listed is among those that are taken over, and one that was taken later is given up here.
type owners struct {
	mu sync.Mutex
	of map[string]standing
}

// ownersMade guards [Sink.owners]. Sinks are made as literals, and tasks ask for it at the same time.
var ownersMade sync.Mutex

func (s *Sink) sharedOwners() *owners {
	ownersMade.Lock()
	defer ownersMade.Unlock()
	if s.owners == nil {
		s.owners = &owners{of: make(map[string]standing)}
	}
	return s.owners
}

func (o *owners) held(job string) (standing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.of[job]
	return s, ok
}

func (o *owners) hold(job string, s standing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of[job] = s
}

func (o *owners) forget(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, job)
}

// ownerID names the job's id. No task's ends like that.
func ownerID(prefix, job string) string { return jobPrefix(prefix, job) + "-owner" }

// own makes this process the one that writes for the job. It is an error when it was, and is not any more.
func (w *transactionWriter) own(ctx context.Context) error {
	if err := w.stillOwner(ctx); err != nil {
		return err
	}
	id := ownerID(w.sink.IDPrefix, w.job)
	w.sink.owners.forget(w.job) // until the answer is known, nobody knows which epoch is this process's
	now, err := w.transactions().take(ctx, id, w.sink.TransactionTimeout)
	if err != nil {
		return err
	}
	w.sink.owners.hold(w.job, now)
	return nil
}

// stillOwner looks whether another process has become the owner since. Where nothing was restored there is none. An id that was not
// used for days is forgotten by the cluster: then nobody else has used it either.
func (w *transactionWriter) stillOwner(ctx context.Context) error {
	mine, ok := w.sink.owners.held(w.job)
	if !ok {
		return nil
	}
	id := ownerID(w.sink.IDPrefix, w.job)
	found, err := w.transactions().describe(ctx, []string{id})
	if err != nil {
		return err
	}
	now, ok := found[id]
	if !ok || now.producerID == mine.producerID && now.epoch == mine.epoch {
		return nil
	}
	return sdk.Fatal(fmt.Errorf("%w: transactional id %q is of producer %d epoch %d by now, this process had producer %d epoch %d: job %q was started "+
		"elsewhere while this process did not answer. Nothing of it is written from here any more; stop one of the two, or give them "+
		"different names or a transactional_id_prefix of their own", ErrTaken, id, now.producerID, now.epoch, mine.producerID, mine.epoch, w.job))
}

// take takes a transactional id over, as fence does, and returns as what.
func (c transactions) take(ctx context.Context, id string, timeout time.Duration) (standing, error) {
	var now standing
	answer, err := c.settled(ctx, func() (int16, error) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = &id
		req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return 0, err
		}
		now = standing{producerID: resp.ProducerID, epoch: resp.ProducerEpoch}
		return resp.ErrorCode, nil
	})
	if err != nil {
		return standing{}, err
	}
	return now, initError(id, timeout, answer)
}
