package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// Reports takes what a task has to say to the job. Its methods are called on the sink loop and must not block. Nothing is
// reported after the task was fenced.
type Reports interface {
	// Opened: the writer is open and restored.
	Opened(task int, attempt protocol.Attempt)
	// Prepared acknowledges a barrier.
	Prepared(task int, attempt protocol.Attempt, id sdk.CheckpointID, state protocol.SinkState)
	// Committed: everything up to checkpoint id is visible.
	Committed(task int, attempt protocol.Attempt, id sdk.CheckpointID)
	// Failed says why the task ended.
	Failed(task int, attempt protocol.Attempt, err error)
}

// Restore is what a task does before its first write.
type Restore struct {
	// Whole is set on one task when the whole sink starts: All is everything that the checkpoint prepared, of all tasks,
	// also when that is nothing.
	Whole bool
	All   [][]byte
	// Commit is what this task alone has to commit again, and Discard what it has to drop, when only it is restarted.
	Commit, Discard []protocol.Prepared
}

// Config of one task attempt.
type Config struct {
	Job         string
	Task        int
	Parallelism int
	Attempt     protocol.Attempt
	Sink        sdk.Sink
	Restore     Restore
	Restored    sdk.CheckpointID // the checkpoint that the task goes on from
	Reports     Reports

	CommitAttempts int // before a failing commit fails the task, which commits it again after its restart
	RetryInitial   time.Duration
	RetryMax       time.Duration
	CloseTimeout   time.Duration

	Now     func() time.Time
	Stats   *telemetry.Sink
	Logger  *slog.Logger
	Metrics sdk.Metrics
}

// Loop drives one task attempt. Methods say who may call them.
type Loop struct {
	cfg       Config
	gate      *exchange.Gate
	inputs    []*exchange.Channel
	writer    sdk.Writer
	committer sdk.Committer // nil when the writer is none
	prepared  []protocol.Prepared
	written   int64 // records, for the total in the manifest
	// alignedFrom is when the loop first waited for missing barriers of the present checkpoint.
	alignedFrom time.Time

	doorbell chan struct{} // one slot
	terminal atomic.Bool
	fenced   atomic.Bool
	commit   atomic.Int64 // newest durable checkpoint
	abort    atomic.Int64 // newest aborted checkpoint
	aborted  int64        // served; loop only
	// committed is the newest checkpoint that was served; loop only.
	committed int64

	cancel context.CancelCauseFunc
	done   chan struct{}
}

// New prepares a task. Attach sets its inputs before Start.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, doorbell: make(chan struct{}, 1), done: make(chan struct{})}
}

// Attach sets where the task reads from. Call it once, before Start.
func (l *Loop) Attach(inputs []*exchange.Channel) {
	l.inputs, l.gate = inputs, exchange.NewGate(inputs)
}

// Start runs the task on a goroutine of its own.
func (l *Loop) Start(ctx context.Context) {
	ctx, l.cancel = context.WithCancelCause(ctx)
	go l.run(ctx)
}

// Attempt is the number of the attempt. Any goroutine.
func (l *Loop) Attempt() protocol.Attempt { return l.cfg.Attempt }

// Ring wakes the loop. Any goroutine; never blocks.
func (l *Loop) Ring() {
	select {
	case l.doorbell <- struct{}{}:
	default:
	}
}

// Commit says that checkpoint id is durable. Any goroutine.
func (l *Loop) Commit(id sdk.CheckpointID) { raise(&l.commit, int64(id)); l.Ring() }

// Abort says that checkpoint id was given up. Any goroutine.
func (l *Loop) Abort(id sdk.CheckpointID) { raise(&l.abort, int64(id)); l.Ring() }

func raise(a *atomic.Int64, to int64) {
	for {
		old := a.Load()
		if old >= to || a.CompareAndSwap(old, to) {
			return
		}
	}
}

// Terminal ends the task: its context is cancelled, and what is not prepared is discarded. Any goroutine, idempotent.
func (l *Loop) Terminal() {
	l.terminal.Store(true)
	l.cancel(sdk.ErrClosed)
	l.Ring()
}

// Fence makes everything that this attempt does from now on change nothing. Any goroutine, idempotent.
func (l *Loop) Fence() {
	l.fenced.Store(true)
	for _, c := range l.inputs {
		c.Close()
	}
}

// Done is closed when the loop has left and the writer is closed. It never is when the writer hangs.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Prepared is what was prepared and not committed, once Done is closed.
func (l *Loop) Prepared() []protocol.Prepared { return l.prepared }

func (l *Loop) run(ctx context.Context) {
	defer close(l.done)
	defer l.cancel(sdk.ErrClosed)
	err := l.open(ctx)
	if err == nil {
		if !l.fenced.Load() {
			l.cfg.Reports.Opened(l.cfg.Task, l.cfg.Attempt)
		}
		err = l.work(ctx)
	}
	if err != nil && !l.terminal.Load() && !l.fenced.Load() {
		if p, ok := errors.AsType[*connector.PanicError](err); ok {
			l.cfg.Logger.Error("writer panicked", "where", p.Where, "stack", string(p.Stack))
		}
		l.cfg.Reports.Failed(l.cfg.Task, l.cfg.Attempt, err)
	}
	l.close(ctx)
}

func (l *Loop) work(ctx context.Context) error {
	for {
		if l.terminal.Load() || l.fenced.Load() {
			return nil
		}
		if err := l.controls(ctx); err != nil {
			return err
		}
		it, from, ok := l.gate.Next()
		switch {
		case !ok:
			l.measureIdle()
			<-l.doorbell
		case it.Batch != nil:
			err := l.write(ctx, it.Batch)
			from.Put(it.Batch)
			if err != nil {
				return err
			}
		default:
			if err := l.barrier(ctx, it.Barrier); err != nil {
				return err
			}
		}
	}
}

func (l *Loop) controls(ctx context.Context) error {
	if id := l.abort.Load(); id > l.aborted {
		l.aborted = id
		l.gate.Abort(sdk.CheckpointID(id))
	}
	if id := l.commit.Load(); id > l.committed {
		if err := l.commitUpTo(ctx, sdk.CheckpointID(id)); err != nil {
			return err
		}
		l.committed = id
		if !l.fenced.Load() {
			l.cfg.Reports.Committed(l.cfg.Task, l.cfg.Attempt, sdk.CheckpointID(id))
		}
	}
	return nil
}

// call runs one writer call, guarded and measured.
func (l *Loop) call(what string, h *telemetry.Histogram, f func() error) error {
	start := l.cfg.Now()
	l.cfg.Stats.Call.Set(start)
	err := connector.Guard(what, f)
	l.cfg.Stats.Call.Clear()
	if h != nil {
		h.Observe(l.cfg.Now().Sub(start))
	}
	if err != nil {
		return fmt.Errorf("sink %s: %s: %w", l.cfg.Sink.Name(), what, err)
	}
	return nil
}

func (l *Loop) write(ctx context.Context, b *sdk.Batch) error {
	size := uint64(b.Bytes())
	if err := l.call("write", &l.cfg.Stats.Write, func() error { return l.writer.Write(ctx, b) }); err != nil {
		return err
	}
	n := b.Records()
	l.written += int64(n)
	if l.cfg.Stats.Batches.Inc(); l.cfg.Stats.Batches.Value()%measureEvery == 0 {
		l.measureQueue()
	}
	l.cfg.Stats.Records.Add(uint64(n))
	l.cfg.Stats.Bytes.Add(size)
	return nil
}

// measureEvery is how many batches share one look at the queues, which costs a visit of every input.
const measureEvery = 64

func (l *Loop) measureQueue() {
	batches, bytes := l.gate.Queued()
	l.cfg.Stats.QueuedBatches.Set(int64(batches))
	l.cfg.Stats.QueuedBytes.Set(bytes)
}

// measureIdle notes, before the loop waits, what waits with it and since when barriers are missing.
func (l *Loop) measureIdle() {
	l.measureQueue()
	switch aligning := l.gate.Aligning() != 0; {
	case aligning && l.alignedFrom.IsZero():
		l.alignedFrom = l.cfg.Now()
		l.cfg.Stats.Aligning.Set(l.alignedFrom)
	case !aligning:
		l.alignedFrom = time.Time{}
		l.cfg.Stats.Aligning.Clear()
	}
}

// barrier prepares and acknowledges.
func (l *Loop) barrier(ctx context.Context, b protocol.BarrierPayload) error {
	if !l.alignedFrom.IsZero() {
		l.cfg.Stats.Alignment.Observe(l.cfg.Now().Sub(l.alignedFrom))
		l.alignedFrom = time.Time{}
		l.cfg.Stats.Aligning.Clear()
	}
	if l.committer == nil {
		if err := l.call("flush", &l.cfg.Stats.Flush, func() error { return l.writer.Flush(ctx) }); err != nil {
			return err
		}
	} else {
		var data []byte
		err := l.call("prepare", &l.cfg.Stats.Prepare, func() (err error) {
			data, err = l.committer.Prepare(ctx, b.Checkpoint)
			return err
		})
		if err != nil {
			return err
		}
		if len(data) > 0 {
			l.prepared = append(l.prepared, protocol.Prepared{Checkpoint: b.Checkpoint, Data: data})
			l.cfg.Stats.Pending.Set(int64(len(l.prepared)))
		}
	}
	if !l.fenced.Load() {
		l.cfg.Reports.Prepared(l.cfg.Task, l.cfg.Attempt, b.Checkpoint, protocol.SinkState{
			Task: l.cfg.Task, Prepared: slices.Clone(l.prepared), Written: l.written,
		})
	}
	return nil
}

// commitUpTo commits in order everything that checkpoint id contains. Nothing younger becomes visible.
func (l *Loop) commitUpTo(ctx context.Context, id sdk.CheckpointID) error {
	for len(l.prepared) > 0 && l.prepared[0].Checkpoint <= id {
		if err := l.commitOne(ctx, l.prepared[0]); err != nil {
			return err
		}
		l.prepared = l.prepared[1:]
		l.cfg.Stats.Pending.Set(int64(len(l.prepared)))
	}
	return nil
}

func (l *Loop) commitOne(ctx context.Context, p protocol.Prepared) error {
	backoff := l.cfg.RetryInitial
	for try := 1; ; try++ {
		err := l.call("commit", &l.cfg.Stats.Commit, func() error { return l.committer.Commit(ctx, p.Data) })
		if err == nil || ctx.Err() != nil || try >= l.cfg.CommitAttempts || errors.Is(err, sdk.ErrFatal) {
			return err
		}
		l.cfg.Stats.CommitRetries.Inc()
		l.cfg.Logger.Warn("commit failed, trying again", "checkpoint", p.Checkpoint, "try", try, "after", backoff, "error", err)
		t := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
		backoff = min(2*backoff, l.cfg.RetryMax)
	}
}
