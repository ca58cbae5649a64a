package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/sink"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// closeTimeout bounds how long a writer may take to close.
const closeTimeout = 10 * time.Second

// region is a reader and the sink task of the same index. With the forward exchange it fails and restarts alone; else all
// regions do so together.
type region struct {
	id     sdk.ReaderID
	reader *reader.Loop
	sink   *sink.Loop
	stats  *telemetry.Reader

	sinkOpen   bool
	readerOpen bool
	ended      bool // the reader returned EndOfInput
	hung       bool // the watchdog gave the reader up
	slow       bool // slow admission was reported

	down    bool // failed, and not started again yet
	waiting bool // its old loops have not left yet
	at      time.Time
	written int64 // by the sink attempts that are over, up to the restored checkpoint
}

// terminate ends the loops and says what to wait for: not for a reader that was just given up because it hangs.
func (r *region) terminate() []<-chan struct{} {
	var waits []<-chan struct{}
	if r.reader != nil {
		r.reader.Fence()
		r.reader.Terminal()
		if r.reader.Started() && !r.hung {
			waits = append(waits, r.reader.Done())
		}
	}
	if r.sink != nil {
		r.sink.Fence()
		r.sink.Terminal()
		waits = append(waits, r.sink.Done())
	}
	return waits
}

// startAll starts every task from the newest durable checkpoint: sink tasks first, one of which restores the whole sink,
// then coordinator and readers.
func (j *job) startAll() {
	n := j.cfg.Parallelism
	j.regions = make([]*region, n)
	if j.last != nil {
		j.base = j.last.Records
		for i := range j.last.Sinks {
			j.last.Sinks[i].Written = 0 // in base now
		}
	}
	states := redistribute(j.last, n)
	for i := range n {
		j.regions[i] = &region{id: sdk.ReaderID(i), at: never}
	}
	j.starting, j.coordUp = true, false
	for i, r := range j.regions {
		j.newReader(r, states[i])
		restore := sink.Restore{}
		if i == 0 {
			restore = sink.Restore{Whole: true, All: preparedOf(j.last)}
		}
		j.newSink(r, restore)
	}
	j.connect()
	for _, r := range j.regions {
		r.sink.Start(j.ctx)
	}
}

// connect joins the fresh loops of all regions with new channels.
func (j *job) connect() {
	credit := j.opts.ExchangeCredit
	if j.cfg.Exchange == exchange.Forward {
		for _, r := range j.regions {
			j.connectForward(r)
		}
		return
	}
	inputs := make([][]*exchange.Channel, len(j.regions))
	for _, from := range j.regions {
		row := make([]*exchange.Channel, len(j.regions))
		for t, to := range j.regions {
			row[t] = exchange.NewChannel(credit, to.sink.Ring, from.reader.Ring)
			inputs[t] = append(inputs[t], row[t])
		}
		from.reader.Attach(exchange.NewRouter(j.cfg.Exchange, row))
	}
	for t, r := range j.regions {
		r.sink.Attach(inputs[t])
	}
}

func (j *job) connectForward(r *region) {
	c := exchange.NewChannel(j.opts.ExchangeCredit, r.sink.Ring, r.reader.Ring)
	r.reader.Attach(exchange.NewRouter(exchange.Forward, []*exchange.Channel{c}))
	r.sink.Attach([]*exchange.Channel{c})
}

func (j *job) newReader(r *region, state protocol.ReaderState) {
	attempt := j.numbers.nextAttempt()
	r.stats = j.cfg.Metrics.NewReader(r.id)
	r.stats.Attempt.Set(int64(attempt))
	r.ended, r.readerOpen, r.hung = false, false, false
	r.reader = reader.New(reader.Config{
		Reader: r.id, Attempt: attempt, Parallelism: j.cfg.Parallelism, Source: j.cfg.Source,
		Limits: reader.Limits{
			Turn: sdk.TurnLimits{Records: j.opts.PollRecords, Bytes: j.opts.PollBytes, Duration: j.opts.PollSoft},
			Hard: j.opts.PollHard, Cancel: j.opts.PollCancel,
		},
		Mailbox: mailbox.Limits{
			Commands: j.opts.MailboxCommands, Bytes: j.opts.MailboxBytes, ReservedCommands: j.opts.ReservedCommands,
			ReservedBytes: j.opts.ReservedBytes, PayloadBytes: int(j.opts.CommandPayloadBytes), RetryAfter: j.opts.RetryInitial,
		},
		Budget: j.budget, Now: j.cfg.Now, Watchdog: j.watchdog, Reports: readerReports{j}, Coordinator: j.toCoordinator(), Stats: r.stats,
		Logger:  j.slog.With("reader", int(r.id), "attempt", uint64(attempt)),
		Metrics: j.cfg.Metrics.ReaderMetrics(j.cfg.Source.Capability().Connector, r.id),
		Splits:  state.Splits, Lineage: append(slices.Clone(state.Metadata.Lineage), attempt), Generation: state.Metadata.NoMoreSplitsGeneration,
		Seams: j.cfg.Seams,
	})
}

func (j *job) newSink(r *region, restore sink.Restore) {
	attempt, task := j.numbers.nextAttempt(), int(r.id)
	stats := j.cfg.Metrics.NewSink(task)
	stats.Attempt.Set(int64(attempt))
	r.sinkOpen = false
	r.sink = sink.New(sink.Config{
		Job: j.cfg.Name, Task: task, Parallelism: j.cfg.Parallelism, Attempt: attempt, Sink: j.cfg.Sink, Restore: restore, Restored: j.newest(),
		Reports: sinkReports{j}, CommitAttempts: j.opts.CommitAttempts, RetryInitial: j.opts.RetryInitial, RetryMax: j.opts.RetryMax,
		CloseTimeout: closeTimeout, Now: j.cfg.Now, Stats: stats,
		Logger:  j.slog.With("sink", task, "attempt", uint64(attempt)),
		Metrics: j.cfg.Metrics.SinkMetrics(j.cfg.Sink.Name(), task),
	})
}

// newCoordinator starts an epoch from the newest durable checkpoint.
func (j *job) newCoordinator() {
	epoch := protocol.Epoch(j.numbers.nextAttempt())
	stats := j.cfg.Metrics.NewCoordinator()
	stats.Epoch.Set(int64(epoch))
	var restored *coordinator.Restored
	if j.last != nil {
		restored = &coordinator.Restored{Coordinator: j.last.Coordinator, Readers: j.last.Readers}
	}
	connector := j.cfg.Source.Capability().Connector
	j.coord = coordinator.New(coordinator.Config{
		Job: j.cfg.Name, Epoch: epoch, Parallelism: j.cfg.Parallelism, Source: j.cfg.Source, Restored: restored, Checkpoints: true,
		TrackerSplits: j.opts.TrackerEntries, TrackerBytes: j.opts.TrackerBytes, PayloadBytes: int(j.opts.CommandPayloadBytes) - 1024,
		RetryInitial: j.opts.RetryInitial, RetryMax: j.opts.RetryMax, Cancel: j.opts.PollCancel, Workers: j.workers, Watchdog: j.watchdog,
		Reports: coordinatorReports{j}, Now: j.cfg.Now, Stats: stats, Logger: j.slog.With("epoch", uint64(epoch)),
		Metrics: j.cfg.Metrics.EnumeratorMetrics(connector), Seams: j.cfg.Seams,
	})
	j.coordUp = false
	j.port.Set(j.coord)
	j.coord.Start(j.ctx)
	for _, r := range j.regions {
		if r.readerOpen && !r.down {
			j.coord.ReaderUp(r.id, r.reader.Attempt(), j.toReader(r), r.stats)
		}
	}
}

// sinkOpened starts readers once every sink task that they could reach is open.
func (j *job) sinkOpened(task int, attempt protocol.Attempt) {
	r := j.regions[task]
	if r.sink.Attempt() != attempt {
		return
	}
	r.sinkOpen = true
	if !j.starting {
		j.recommitted(r)
		if !j.ended {
			r.reader.Start(j.ctx)
		}
		return
	}
	for _, other := range j.regions {
		if !other.sinkOpen {
			return
		}
	}
	j.starting = false
	// Only now: one task restores the whole sink, and commits what all of them prepared.
	for _, r := range j.regions {
		j.recommitted(r)
	}
	if j.ended {
		return
	}
	if j.last != nil && j.last.Kind == protocol.Final {
		j.step(lifecycle.Drain)
		j.end(Result{Outcome: AlreadyFinished}, nil) // all that was left to do was the commit
		return
	}
	j.newCoordinator()
	for _, r := range j.regions {
		r.reader.Start(j.ctx)
	}
	if j.machine.State() == lifecycle.Restoring {
		j.step(lifecycle.Started)
	}
}

// recommitted notes that a task was restarted, and with it its part of a durable checkpoint was committed, while that
// checkpoint waited for the commits.
func (j *job) recommitted(r *region) {
	if j.core.Phase() == checkpoint.Committing {
		j.do(j.core.Step(checkpoint.Committed{ID: j.core.Pending(), Task: int(r.id), Now: j.cfg.Now()}))
	}
}

// taskFailed meets the failure of a reader or a sink task.
func (j *job) taskFailed(what string, scope telemetry.RestartScope, r *region, err error) {
	if j.ended || r.down || pending(j.wholeAt) {
		return
	}
	whole := j.cfg.Exchange != exchange.Forward || j.starting
	if whole {
		scope = telemetry.RestartJob
	}
	opened := r.readerOpen && r.sinkOpen
	at, ok := j.failed(what, scope, opened, err)
	if !ok {
		return
	}
	r.hung = errors.Is(err, reader.ErrStuck)
	if r.hung {
		j.stats.Abandoned.Inc()
	}
	j.ready.Store(false)
	reason := telemetry.AbortReader
	if scope == telemetry.RestartSink {
		reason = telemetry.AbortSink
	}
	j.do(j.core.Step(checkpoint.Lost{Reason: reason, Err: fmt.Errorf("%s failed: %w", what, err), Now: j.cfg.Now()}))
	if whole {
		j.stopAll(at)
		return
	}
	j.coord.ReaderDown(r.id, r.reader.Attempt())
	r.down, r.waiting, r.at = true, true, at
	j.await(what, r.terminate(), func() { r.waiting = false })
}

// stopAll ends every task; all are started again at the given time.
func (j *job) stopAll(at time.Time) {
	j.wholeAt, j.coordAt = at, never
	var waits []<-chan struct{}
	for _, r := range j.regions {
		r.down, r.at = true, never
		waits = append(waits, r.terminate()...)
	}
	if j.coord != nil {
		j.coord.Fence()
		waits = append(waits, j.coord.Done())
		j.coordUp = false
	}
	j.stopping++
	j.await("all tasks", waits, func() { j.stopping-- })
}

// await calls then on the job's goroutine when all of waits are closed, or when connector code had its time: what still
// runs then is fenced and left behind.
func (j *job) await(what string, waits []<-chan struct{}, then func()) {
	j.wg.Go(func() {
		limit := time.NewTimer(j.opts.PollCancel)
		defer limit.Stop()
		for _, w := range waits {
			select {
			case <-w:
			case <-j.ctx.Done():
				return
			case <-limit.C:
				j.stats.Abandoned.Inc()
				j.log.Warn("connector code does not return; left behind, fenced", zap.String("what", what))
				j.post(then)
				return
			}
		}
		j.post(then)
	})
}

// restartDue starts again what has left and has waited long enough.
func (j *job) restartDue(now time.Time) {
	switch {
	case pending(j.wholeAt):
		if j.stopping == 0 && !now.Before(j.wholeAt) {
			j.wholeAt = never
			j.startAll()
		}
		return
	case pending(j.coordAt) && j.stopping == 0 && !now.Before(j.coordAt):
		j.coordAt = never
		j.newCoordinator()
	}
	for _, r := range j.regions {
		if r.down && !r.waiting && !now.Before(r.at) {
			j.restartRegion(r)
		}
	}
}

// restartRegion starts one reader and its sink task again from the newest durable checkpoint. The others do not stop.
func (j *job) restartRegion(r *region) {
	old := r.sink
	r.down, r.at = false, never
	restore := sink.Restore{}
	r.written = 0
	for _, s := range sinksOf(j.last) {
		if s.Task == int(r.id) && j.last.Parallelism == j.cfg.Parallelism {
			restore.Commit, r.written = s.Prepared, s.Written
		}
	}
	select {
	case <-old.Done():
		restore.Discard = younger(old.Prepared(), j.last)
	default: // left behind: what it prepared stays invisible until the next restore of the whole sink
	}
	j.newReader(r, redistribute(j.last, j.cfg.Parallelism)[r.id])
	j.newSink(r, restore)
	j.connectForward(r)
	r.sink.Start(j.ctx)
}
