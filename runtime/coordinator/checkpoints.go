package coordinator

import (
	"errors"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// errNotReady declines a cut while a reader is not registered.
var errNotReady = errors.New("not every reader is registered")

// Cut makes the coordinator's part of a checkpoint and sends the barriers.
func (l *Loop) Cut(id sdk.CheckpointID, kind protocol.CheckpointKind) {
	l.inbox.put("cut", func() error { l.cut(id, kind); return nil })
}

// cut closes every gate, snapshots enumerator and tracker, hands both over, and offers the barriers. The gate of a reader
// opens when its mailbox has the barrier: what the enumerator assigned in between is in its snapshot, or in none, and reaches the
// reader behind the barrier.
func (l *Loop) cut(id sdk.CheckpointID, kind protocol.CheckpointKind) {
	if !l.reconciled || !l.allRegistered() {
		l.cfg.Reports.Declined(l.cfg.Epoch, id, errNotReady)
		return
	}
	for _, t := range l.targets {
		t.open = false
	}
	var state sdk.VersionedBytes
	l.tell("snapshot", func() (err error) {
		state, err = l.enumerator.Snapshot(id)
		return err
	})
	if l.over() {
		return // the job hears of the failure, which aborts the checkpoint
	}
	l.cfg.Reports.Snapshot(l.cfg.Epoch, id, protocol.CoordinatorState{
		Epoch: l.cfg.Epoch, Enumerator: state, Tracker: l.tracker.Snapshot(), Generation: l.generation,
		Owing: l.owing || l.tracker.Unadmitted(),
	})
	for _, t := range l.sorted() {
		if s := l.control(t, protocol.Barrier, protocol.BarrierPayload{Checkpoint: id, Kind: kind}); s != protocol.Accepted {
			l.cfg.Reports.Declined(l.cfg.Epoch, id, errNotReady)
		}
		t.open = true
		l.flush(t)
	}
}

func (l *Loop) allRegistered() bool {
	for _, t := range l.targets {
		if !t.registered {
			return false
		}
	}
	return len(l.targets) == l.cfg.Parallelism
}

// Included passes on that a reader's part of checkpoint id was acknowledged.
func (l *Loop) Included(id sdk.CheckpointID, reader sdk.ReaderID, attempt protocol.Attempt, marks []protocol.Watermark) {
	l.inbox.put("included", func() error {
		l.tracker.Included(id, reader, attempt, marks)
		return nil
	})
}

// Complete says that checkpoint id is durable. finished is the evidence that it contains.
func (l *Loop) Complete(id sdk.CheckpointID, finished []protocol.Split) {
	l.inbox.put("checkpoint complete", func() error {
		if n := l.tracker.Complete(id); n > 0 {
			l.cfg.Stats.Compactions.Inc()
			l.cfg.Stats.Compacted.Add(uint64(n))
		}
		for _, t := range l.sorted() {
			l.control(t, protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: id})
		}
		if !l.reconciled {
			return nil
		}
		l.tellFinished(finished)
		l.tell("checkpoint complete", func() error { return l.enumerator.CheckpointComplete(id) })
		return nil
	})
}

func (l *Loop) tellFinished(splits []protocol.Split) {
	if len(splits) > 0 {
		l.tell("splits finished", func() error { return l.enumerator.SplitsFinished(splits) })
	}
}

// Abort says that checkpoint id will not complete.
func (l *Loop) Abort(id sdk.CheckpointID) {
	l.inbox.put("checkpoint aborted", func() error {
		l.tracker.Aborted(id)
		for _, t := range l.sorted() {
			l.control(t, protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: id})
		}
		if l.reconciled {
			l.tell("checkpoint aborted", func() error { return l.enumerator.CheckpointAborted(id) })
		}
		return nil
	})
}
