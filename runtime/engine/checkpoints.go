package engine

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// triggerDue starts the next checkpoint when one is due and can be taken.
func (j *job) triggerDue(now time.Time) {
	if !j.core.Ready(now) || !j.whole() {
		return
	}
	kind, due := j.dueKind(now)
	if !due {
		return
	}
	id, ok := j.nextCheckpoint()
	if !ok {
		return
	}
	if kind == protocol.Savepoint {
		j.serving, j.savepoints = j.savepoints, nil
	}
	j.wantedServed, j.wanted = j.wanted, false
	if j.cfg.Checkpoint.Interval != Never {
		j.nextDue = now.Add(j.cfg.Checkpoint.Interval)
	}
	j.stats.Triggered.Inc()
	j.stats.Running.Set(now)
	j.do(j.core.Step(checkpoint.Trigger{ID: id, Kind: kind, LastAttempt: j.numbers.lastAttempt(), Now: now}))
}

// whole reports that a checkpoint could be cut: every task runs and every reader is registered.
func (j *job) whole() bool {
	if j.starting || !j.coordUp || pending(j.wholeAt) || pending(j.coordAt) {
		return false
	}
	for _, r := range j.regions {
		if r.down || !r.readerOpen {
			return false
		}
	}
	return true
}

// dueKind says which kind of checkpoint is due, the most urgent first.
func (j *job) dueKind(now time.Time) (protocol.CheckpointKind, bool) {
	switch {
	case j.allEnded():
		return protocol.Final, true
	case j.stopAsked:
		return protocol.Stop, true
	case len(j.savepoints) > 0:
		return protocol.Savepoint, true
	case j.wanted:
		return protocol.Periodic, true
	case j.cfg.Checkpoint.Interval != Never && !now.Before(j.nextDue):
		return protocol.Periodic, true
	default:
		return 0, false
	}
}

func (j *job) allEnded() bool {
	for _, r := range j.regions {
		if !r.ended {
			return false
		}
	}
	return true
}

// do carries out what the checkpoint core says.
func (j *job) do(effects []checkpoint.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case checkpoint.Cut:
			j.coord.Cut(e.ID, e.Kind)
		case checkpoint.Store:
			j.write(e.Manifest)
		case checkpoint.Complete:
			j.complete(e.Manifest)
		case checkpoint.Finished:
			j.finishedCheckpoint(e)
		case checkpoint.Aborted:
			j.aborted(e)
		}
	}
}

// write stores the manifest on a goroutine of its own: the job's loop never waits for a disk.
func (j *job) write(m *protocol.Manifest) {
	m.Records = j.base
	for i := range m.Sinks {
		m.Records += m.Sinks[i].Written
	}
	j.io.Go(func() {
		info, err := j.store.Write(j.ctx, m)
		j.post(func() { j.do(j.core.Step(checkpoint.Stored{ID: m.ID, Size: info.Size, Err: err, Now: j.cfg.Now()})) })
	})
}

// complete: the checkpoint is durable. From here on a restart goes back to it, and sink tasks make visible what it contains.
func (j *job) complete(m *protocol.Manifest) {
	j.last, j.failures = m, 0
	_ = j.cfg.Seams.At(seam.At{Point: seam.CheckpointCompleted, Checkpoint: m.ID}) // it stands, whoever dies
	for _, r := range j.regions {
		if r.down {
			continue // commits when it is started again
		}
		r.sink.Commit(m.ID)
	}
	j.coord.Complete(m.ID, evidenceOf(m))
}

func (j *job) finishedCheckpoint(e checkpoint.Finished) {
	m, now := e.Manifest, j.cfg.Now()
	for i, took := range e.Stages {
		j.stats.Stages[i].Observe(took)
	}
	j.stats.Running.Clear()
	j.stats.CheckpointCompleted(m.ID, now, now.Sub(e.Began), e.Size)
	j.log.Debug("checkpoint completed", zap.Int64("checkpoint", int64(m.ID)), zap.Duration("took", now.Sub(e.Began)), zap.Int64("bytes", e.Size))
	if f := j.cfg.Listener.CheckpointDone; f != nil {
		f(m, now.Sub(e.Began))
	}
	j.checkAdmission()
	j.answerServed(m.ID, nil)
	j.prune(m.ID)
	switch m.Kind {
	case protocol.Final:
		j.step(lifecycle.Drain)
		j.end(Result{Outcome: Finished}, nil)
	case protocol.Stop:
		j.step(lifecycle.Drain)
		j.end(Result{Outcome: Stopped}, nil)
	case protocol.Periodic, protocol.Savepoint:
	}
}

// prune removes old checkpoints beside the loop. A failure is no reason to stop: it costs disk space, and is logged.
func (j *job) prune(newest sdk.CheckpointID) {
	j.io.Go(func() {
		if err := j.store.Prune(j.ctx, j.cfg.Checkpoint.Keep); err != nil {
			j.log.Warn("old checkpoints cannot be removed", zap.Int64("newest", int64(newest)), zap.Error(err))
		}
	})
}

func (j *job) aborted(e checkpoint.Aborted) {
	j.stats.Aborted[e.Reason].Inc()
	j.stats.Running.Clear()
	switch f := j.cfg.Listener.CheckpointAborted; {
	case f != nil:
		f(e.ID, e.Err)
	case e.Reason != telemetry.AbortTerminal:
		j.log.Warn("checkpoint aborted", zap.Int64("checkpoint", int64(e.ID)), zap.Stringer("reason", e.Reason), zap.Error(e.Err))
	}
	for _, r := range j.regions {
		r.sink.Abort(e.ID)
	}
	if j.coord != nil {
		j.coord.Abort(e.ID)
	}
	j.answerServed(0, fmt.Errorf("%w: checkpoint %d was aborted: %w", ErrSavepoint, e.ID, e.Err))
	j.wanted = j.wanted || j.wantedServed // whoever waited still does
	if e.Reason == telemetry.AbortStore {
		j.storeFailed(e.Err)
	}
}

// storeFailed counts a checkpoint that could not be stored. When nobody can tell whether it was, the job ends: whatever it did
// next might contradict the checkpoint that its next start finds.
func (j *job) storeFailed(err error) {
	j.failures++
	switch {
	case errors.Is(err, checkpoint.ErrUncertain):
		j.end(Result{}, err)
	case j.failures >= j.opts.CheckpointFailures:
		j.end(Result{}, fmt.Errorf("%d checkpoints in a row could not be stored (runtime.checkpoint_failures): %w", j.failures, err))
	}
}

// stop latches the request; triggerDue takes the savepoint as soon as one can be taken.
func (j *job) stop() {
	if j.ended || j.stopAsked {
		return
	}
	if j.machine.State() == lifecycle.Restoring && j.starting {
		j.end(Result{Outcome: Cancelled}, nil)
		return
	}
	now := j.cfg.Now()
	j.stopAsked, j.stopBy = true, now.Add(j.opts.StopTimeout)
	// What waits for its restart is started now: whoever stops a job does not want to wait for a back-off.
	j.coordAt, j.wholeAt = earliestPending(j.coordAt, now), earliestPending(j.wholeAt, now)
	for _, r := range j.regions {
		r.at = earliestPending(r.at, now)
	}
}

// earliestPending brings a pending time forward to now.
func earliestPending(at, now time.Time) time.Time {
	if pending(at) && now.Before(at) {
		return now
	}
	return at
}

func (j *job) savepoint(answer chan savepointAnswer) {
	if len(j.savepoints) >= maxSavepointRequests {
		answer <- savepointAnswer{err: fmt.Errorf("%w: %d requests are waiting already", ErrSavepoint, maxSavepointRequests)}
		return
	}
	j.savepoints = append(j.savepoints, answer)
}

// maxSavepointRequests bounds the requests that wait for one savepoint.
const maxSavepointRequests = 64

func (j *job) answerServed(id sdk.CheckpointID, err error) {
	for _, a := range j.serving {
		a <- savepointAnswer{id, err} // has room for one
	}
	j.serving = nil
}

func (j *job) answerSavepoints(id sdk.CheckpointID, err error) {
	j.serving = append(j.serving, j.savepoints...)
	j.savepoints = nil
	j.answerServed(id, err)
}
