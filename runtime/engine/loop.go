package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

// job is a running job. The goroutine of run owns it; post brings work to it.
//
// Goroutines that it starts: the watchdog, one for the store write in progress, one per region or coordinator that is being
// stopped, and through their loops the coordinator, the readers and the sink tasks. shutdown ends them all.
type job struct {
	cfg   Job
	opts  *Options
	lane  protocol.Lane
	store checkpoint.Storage
	log   *zap.Logger
	slog  *slog.Logger
	stats *telemetry.Job

	machine  lifecycle.Machine
	core     *checkpoint.Core
	policy   restarts
	numbers  numbers
	last     *protocol.Manifest // newest durable checkpoint of this job, nil when none
	base     int64              // records committed before the tasks of this life were started
	failures int                // checkpoints in a row that could not be stored
	// lastFailure is the last one that was met with a restart.
	lastFailure error
	everUp      bool // the job once read: from then on failures are met with restarts

	workers  *coordinator.Workers
	watchdog *watchdog.Watchdog
	budget   *mailbox.Budget
	port     coordinator.Port

	coord   *coordinator.Loop
	coordUp bool // reconciled
	// coordAt is when a failed coordinator is started again, never when none is due; the same for the whole job.
	coordAt  time.Time
	wholeAt  time.Time
	stopping int // loops that are being waited for before wholeAt or coordAt may act
	regions  []*region
	starting bool // sink tasks are opening; readers start when all are open
	wanted   bool // the enumerator waits for a checkpoint
	// wantedServed: the checkpoint in progress is one that the enumerator waits for.
	wantedServed bool
	stopAsked    bool
	stopBy       time.Time
	stopFailures int                    // since the request to stop
	savepoints   []chan savepointAnswer // requests that no checkpoint serves yet
	serving      []chan savepointAnswer // requests that the checkpoint in progress serves
	nextDue      time.Time
	ready        atomic.Bool

	ctx    context.Context //nolint:containedctx // the run context of the job, the parent of its loops
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	io     sync.WaitGroup // calls of the store, which are let finish

	inbox struct {
		sync.Mutex
		queue  []func()
		closed bool
	}
	doorbell chan struct{} // one slot

	ended  bool
	result Result
	err    error
}

func newJob(ctx context.Context, cfg Job, lane protocol.Lane, s checkpoint.Storage, m *protocol.Manifest) (*job, error) {
	c := cfg.Source.Capability()
	numbers, err := reserve(ctx, s)
	if err != nil {
		return nil, err
	}
	j := &job{
		cfg: cfg, opts: cfg.Options, lane: lane, store: s, last: m, numbers: numbers,
		log: cfg.Logger.With(zap.String("job", cfg.Name)), stats: cfg.Metrics.Job(),
		policy:   restarts{initial: cfg.Options.RestartInitial, max: cfg.Options.RestartMax, limit: cfg.Options.RestartLimit, window: cfg.Options.RestartWindow},
		workers:  coordinator.NewWorkers(cfg.Options.AsyncConcurrency),
		budget:   mailbox.NewBudget(cfg.Options.ProcessMailboxBytes),
		doorbell: make(chan struct{}, 1), coordAt: never, wholeAt: never, stopBy: never,
	}
	j.slog = slog.New(zapslog.NewHandler(j.log.Core()))
	j.watchdog = watchdog.New(max(cfg.Options.PollHard/4, time.Millisecond), cfg.Now)
	j.core = checkpoint.NewCore(protocol.Manifest{
		Job: cfg.Name, Parallelism: cfg.Parallelism, Exchange: string(cfg.Exchange), Lane: lane, Connector: c.Connector,
		ConnectorVersion: c.Version, CapabilityDigest: c.Digest(), Sink: cfg.Sink.Name(),
	}, cfg.Parallelism, checkpoint.Limits{
		Timeout: cfg.Options.CheckpointTimeout, RetryInitial: cfg.Options.RetryInitial, RetryMax: cfg.Options.RetryMax,
	})
	cfg.Metrics.SetParallelism(cfg.Parallelism, cfg.Parallelism)
	return j, nil
}

// post brings f to the job's goroutine. Any goroutine; never blocks. The queue is bounded by its senders: each task has at
// most a handful of reports under way.
func (j *job) post(f func()) {
	j.inbox.Lock()
	if !j.inbox.closed {
		j.inbox.queue = append(j.inbox.queue, f)
	}
	j.inbox.Unlock()
	select {
	case j.doorbell <- struct{}{}:
	default:
	}
}

func (j *job) take() []func() {
	j.inbox.Lock()
	defer j.inbox.Unlock()
	q := j.inbox.queue
	j.inbox.queue = nil
	return q
}

// run drives the job until it has ended.
func (j *job) run() (Result, error) {
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	j.wg.Go(func() { j.watchdog.Run(j.ctx) })
	j.step(lifecycle.Restore)
	j.announceRestore()
	j.startAll()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !j.ended {
		for _, f := range j.take() {
			f()
		}
		j.advance(j.cfg.Now())
		if j.ended {
			break
		}
		timer.Reset(max(j.wake().Sub(j.cfg.Now()), 0))
		select {
		case <-j.doorbell:
		case <-timer.C:
		}
	}
	j.shutdown()
	j.step(lifecycle.Finished)
	return j.result, j.err
}

func (j *job) announceRestore() {
	if j.last == nil {
		j.log.Info("starting anew", zap.Int("parallelism", j.cfg.Parallelism), zap.Stringer("lane", j.lane))
		return
	}
	j.base = j.last.Records
	j.stats.CheckpointRestored(j.last.ID, j.last.Completed)
	j.log.Info("restoring", zap.Int64("checkpoint", int64(j.last.ID)), zap.Int("parallelism", j.cfg.Parallelism),
		zap.Int("taken_with", j.last.Parallelism), zap.Stringer("lane", j.lane))
	if f := j.cfg.Listener.Restored; f != nil && j.last.Kind != protocol.Final {
		f(j.last)
	}
}

// step advances the main machine and its metric. Steps that come too late to matter are ignored by the table.
func (j *job) step(e lifecycle.Event) {
	if _, err := j.machine.Step(e); err != nil {
		j.log.Warn("life cycle", zap.Error(err))
		return
	}
	j.stats.SetState(telemetry.State(j.machine.State()))
}

// end ends the job; the first reason wins.
func (j *job) end(r Result, err error) {
	if j.ended {
		return
	}
	j.ended, j.err = true, err
	j.ready.Store(false)
	if j.last != nil {
		r.Checkpoint, r.Records = j.last.ID, j.last.Records
	}
	j.result = r
	switch {
	case err != nil:
		j.step(lifecycle.Fail)
	case r.Outcome == Cancelled:
		j.step(lifecycle.Cancel)
	}
}

// advance does what is due.
func (j *job) advance(now time.Time) {
	j.do(j.core.Step(checkpoint.Tick{Now: now}))
	j.stats.ProcessMailboxBytes.Set(j.budget.Used())
	if j.ended {
		return
	}
	if !now.Before(j.stopBy) {
		err := fmt.Errorf("%w within %s (runtime.stop_timeout) of the request to stop; %s", ErrSavepoint, j.opts.StopTimeout, j.standing())
		if j.lastFailure != nil {
			err = fmt.Errorf("%w; the last failure was: %w", err, j.lastFailure)
		}
		j.end(Result{}, err)
		return
	}
	if j.core.Phase() == checkpoint.Storing {
		return // what to restore from is known when the store has answered
	}
	j.restartDue(now)
	j.triggerDue(now)
}

func (j *job) standing() string {
	if j.last == nil {
		return "no checkpoint was completed"
	}
	return fmt.Sprintf("checkpoint %d stands", j.last.ID)
}

// wake is when advance has to run again if nothing happens.
func (j *job) wake() time.Time {
	next := j.stopBy
	for _, t := range []time.Time{j.coordAt, j.wholeAt} {
		if t.After(j.cfg.Now()) {
			next = earliest(next, t)
		}
	}
	now := j.cfg.Now()
	if at, ok := j.core.Wake(now); ok {
		next = earliest(next, at)
	}
	if j.core.Phase() == checkpoint.Idle && j.nextDue.After(now) {
		next = earliest(next, j.nextDue)
	}
	for _, r := range j.regions {
		if r.at.After(now) {
			next = earliest(next, r.at)
		}
	}
	return earliest(next, now.Add(time.Minute))
}

func earliest(t time.Time, more ...time.Time) time.Time {
	for _, m := range more {
		if m.Before(t) {
			t = m
		}
	}
	return t
}

// maxStopFailures is how many failures a job survives between the request to stop and its savepoint.
const maxStopFailures = 3

// failed meets a failure: it asks the policy, and fails the job when a restart cannot help. It returns when to restart. Until
// the job has been up for the first time, the failure of what was not open yet is final: who starts a job wants to hear at
// once what is wrong with it.
func (j *job) failed(what string, scope telemetry.RestartScope, opened bool, err error) (at time.Time, ok bool) {
	j.lastFailure = fmt.Errorf("%s: %w", what, err)
	if j.stopAsked {
		if j.stopFailures++; j.stopFailures > maxStopFailures {
			j.end(Result{}, fmt.Errorf("%w, because %w; %s", ErrSavepoint, j.lastFailure, j.standing()))
			return never, false
		}
	}
	if !curable(err) || (!j.everUp && !opened) {
		j.end(Result{}, fmt.Errorf("%s: %w", what, err))
		return never, false
	}
	now := j.cfg.Now()
	delay, ok := j.policy.next(now)
	if !ok {
		j.end(Result{}, fmt.Errorf("%s failed again after %d restarts within %s (runtime.restart_limit): %w", what, j.opts.RestartLimit, j.opts.RestartWindow, err))
		return never, false
	}
	if j.stopAsked {
		delay = 0 // whoever stops a job does not want to wait for a back-off
	}
	j.stats.Restarts[scope].Inc()
	if f := j.cfg.Listener.Restarting; f != nil {
		f(what, err, delay)
	} else {
		j.log.Warn("restarting", zap.String("what", what), zap.Duration("after", delay), zap.Error(err))
	}
	return now.Add(delay), true
}

// checkAdmission logs once when admission is slower than its budget.
func (j *job) checkAdmission() {
	for _, r := range j.regions {
		if r.stats == nil || r.slow {
			continue
		}
		d := r.stats.Admission.Distribution()
		if d.Count() >= 1000 && d.Quantile(0.99) > 2*j.opts.AdmissionBudget {
			r.slow = true
			j.log.Warn("admission is slower than runtime.admission_budget", zap.Int("reader", int(r.id)), zap.Duration("p99_at_most", d.Quantile(0.99)))
		}
	}
}

// shutdown ends every loop and waits for them, each as long as a connector call may take.
func (j *job) shutdown() {
	if j.err != nil || j.result.Outcome == Cancelled {
		j.do(j.core.Step(checkpoint.Lost{Reason: telemetry.AbortTerminal, Err: ErrEnded, Now: j.cfg.Now()}))
	}
	j.inbox.Lock()
	j.inbox.closed = true
	j.inbox.Unlock()
	var waits []<-chan struct{}
	for _, r := range j.regions {
		waits = append(waits, r.terminate()...)
	}
	if j.coord != nil {
		j.coord.Fence()
		waits = append(waits, j.coord.Done())
	}
	limit := time.NewTimer(j.opts.PollCancel + closeTimeout)
	defer limit.Stop()
	for i, w := range waits {
		select {
		case <-w:
		case <-limit.C:
			j.abandon(waits[i:])
			j.cancel(sdk.ErrClosed)
			j.answerSavepoints(0, ErrEnded)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), closeTimeout)
	defer cancel()
	if err := j.workers.Wait(ctx); err != nil {
		j.log.Warn("a slow enumerator call does not end; left behind", zap.Error(err))
		j.stats.Abandoned.Inc()
	}
	stored := make(chan struct{})
	go func() { j.io.Wait(); close(stored) }()
	select {
	case <-stored:
	case <-ctx.Done():
		j.log.Warn("the state directory does not answer; left behind")
	}
	j.cancel(sdk.ErrClosed)
	j.wg.Wait()
	j.answerSavepoints(0, ErrEnded)
}

func (j *job) abandon(waits []<-chan struct{}) {
	left := 0
	for _, w := range waits {
		select {
		case <-w:
		default:
			left++
		}
	}
	j.stats.Abandoned.Add(uint64(left))
	j.log.Warn("connector code does not return; its goroutines are left behind, fenced", zap.Int("goroutines", left))
	if j.err == nil && j.result.Outcome == Cancelled {
		j.err = errors.Join(j.err, fmt.Errorf("%w: %d calls, given %s", ErrLeftBehind, left, j.opts.PollCancel))
	}
}
