package engine

import (
	"errors"
	"fmt"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/sink"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// What loops report comes to the job's goroutine by post, and is dropped when it comes from an attempt or epoch that is not
// the current one.

type readerReports struct{ j *job }

var _ reader.Reports = readerReports{}

func (p readerReports) on(id sdk.ReaderID, attempt protocol.Attempt, f func(j *job, r *region)) {
	p.j.post(func() {
		r := p.j.regions[id]
		if r.reader.Attempt() != attempt || r.down {
			p.j.stats.StaleCallbacks.Inc()
			return
		}
		f(p.j, r)
	})
}

func (p readerReports) Opened(id sdk.ReaderID, attempt protocol.Attempt) {
	p.on(id, attempt, func(j *job, r *region) {
		r.readerOpen = true
		if j.coord != nil && !pending(j.coordAt) {
			j.coord.ReaderUp(id, attempt, j.toReader(r), r.stats)
		}
		j.updateReady()
	})
}

func (p readerReports) Snapshot(id sdk.ReaderID, attempt protocol.Attempt, ckpt sdk.CheckpointID, state protocol.ReaderState) {
	p.on(id, attempt, func(j *job, _ *region) {
		if ckpt == j.core.Pending() {
			j.coord.Included(ckpt, id, attempt, state.Metadata.Watermarks)
		}
		j.do(j.core.Step(checkpoint.ReaderTaken{ID: ckpt, State: state, Now: j.cfg.Now()}))
	})
}

func (p readerReports) Ended(id sdk.ReaderID, attempt protocol.Attempt, ended bool) {
	p.on(id, attempt, func(_ *job, r *region) { r.ended = ended })
}

func (p readerReports) Failed(id sdk.ReaderID, attempt protocol.Attempt, err error) {
	p.on(id, attempt, func(j *job, r *region) {
		j.taskFailed(fmt.Sprintf("reader %d of source %s", id, j.cfg.Source.Capability().Connector), telemetry.RestartReader, r, err)
	})
}

type sinkReports struct{ j *job }

var _ sink.Reports = sinkReports{}

func (p sinkReports) on(task int, attempt protocol.Attempt, f func(j *job, r *region)) {
	p.j.post(func() {
		r := p.j.regions[task]
		if r.sink.Attempt() != attempt || r.down {
			p.j.stats.StaleCallbacks.Inc()
			return
		}
		f(p.j, r)
	})
}

func (p sinkReports) Opened(task int, attempt protocol.Attempt) {
	p.on(task, attempt, func(j *job, _ *region) { j.sinkOpened(task, attempt) })
}

func (p sinkReports) Prepared(task int, attempt protocol.Attempt, id sdk.CheckpointID, state protocol.SinkState) {
	p.on(task, attempt, func(j *job, r *region) {
		state.Written += r.written
		j.do(j.core.Step(checkpoint.SinkTaken{ID: id, State: state, Now: j.cfg.Now()}))
	})
}

func (p sinkReports) Committed(task int, attempt protocol.Attempt, id sdk.CheckpointID) {
	p.on(task, attempt, func(j *job, _ *region) {
		j.do(j.core.Step(checkpoint.Committed{ID: id, Task: task, Now: j.cfg.Now()}))
	})
}

func (p sinkReports) Failed(task int, attempt protocol.Attempt, err error) {
	p.on(task, attempt, func(j *job, r *region) {
		j.taskFailed(fmt.Sprintf("sink task %d", task), telemetry.RestartSink, r, err)
	})
}

type coordinatorReports struct{ j *job }

var _ coordinator.Reports = coordinatorReports{}

func (p coordinatorReports) on(epoch protocol.Epoch, f func(j *job)) {
	p.j.post(func() {
		if p.j.coord.Epoch() != epoch || pending(p.j.coordAt) || pending(p.j.wholeAt) {
			p.j.stats.StaleCallbacks.Inc()
			return
		}
		f(p.j)
	})
}

func (p coordinatorReports) Reconciled(epoch protocol.Epoch) {
	p.on(epoch, func(j *job) { j.coordUp = true; j.updateReady() })
}

func (p coordinatorReports) Snapshot(epoch protocol.Epoch, id sdk.CheckpointID, state protocol.CoordinatorState) {
	p.on(epoch, func(j *job) {
		j.do(j.core.Step(checkpoint.CoordinatorTaken{ID: id, State: state, Now: j.cfg.Now()}))
	})
}

func (p coordinatorReports) Declined(epoch protocol.Epoch, id sdk.CheckpointID, err error) {
	p.on(epoch, func(j *job) {
		if id == j.core.Pending() {
			j.do(j.core.Step(checkpoint.Lost{Reason: telemetry.AbortCoordinator, Err: err, Now: j.cfg.Now()}))
		}
	})
}

func (p coordinatorReports) CheckpointWanted(epoch protocol.Epoch) {
	p.on(epoch, func(j *job) { j.wanted = true })
}

func (p coordinatorReports) ReaderBroken(id sdk.ReaderID, attempt protocol.Attempt, err error) {
	readerReports(p).Failed(id, attempt, err)
}

func (p coordinatorReports) Failed(epoch protocol.Epoch, err error) {
	p.on(epoch, func(j *job) {
		if j.ended {
			return
		}
		what := fmt.Sprintf("coordinator of source %s", j.cfg.Source.Capability().Connector)
		at, ok := j.failed(what, telemetry.RestartCoordinator, j.coordUp, err)
		if !ok {
			return
		}
		j.coordUp, j.coordAt = false, at
		j.updateReady()
		j.do(j.core.Step(checkpoint.Lost{Reason: telemetry.AbortCoordinator, Err: err, Now: j.cfg.Now()}))
		j.coord.Fence()
		if errors.Is(err, coordinator.ErrStuck) {
			j.stats.Abandoned.Inc()
			return // the watchdog gave it up: its goroutine is left behind, fenced
		}
		j.stopping++
		j.await(what, []<-chan struct{}{j.coord.Done()}, func() { j.stopping-- })
	})
}

func (j *job) updateReady() {
	up := j.whole()
	j.everUp = j.everUp || up
	j.ready.Store(up)
}
