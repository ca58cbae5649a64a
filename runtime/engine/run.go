package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Run runs the job until it has ended: a bounded job after its last commit, any job after ctx is cancelled, with a
// savepoint. An error means that the job failed; its newest completed checkpoint stands.
func Run(ctx context.Context, job Job) error {
	h, err := Start(ctx, job)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, h.Stop)
	defer stop()
	_, err = h.Wait(context.WithoutCancel(ctx))
	return err
}

// ErrEnded answers requests to a job that has ended.
var ErrEnded = errors.New("the job has ended")

// ErrSavepoint marks a savepoint that could not be taken.
var ErrSavepoint = errors.New("no savepoint")

// ErrLeftBehind marks the end of a cancelled job whose connector code did not return: its goroutines are left behind, fenced.
var ErrLeftBehind = errors.New("connector calls did not return")

// Handle controls a running job. Its methods may be called from any goroutine.
type Handle struct {
	job  *job
	done chan struct{}
	res  Result // valid after done
	err  error
}

// Start validates the job, takes its state directory, reads the checkpoint to go on from, and asks the source whether it
// can work. Then it returns and the job runs on goroutines of its own. ctx bounds only that; it does not end the job.
func Start(ctx context.Context, j Job) (*Handle, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	j = j.withDefaults()
	lane, err := j.lane()
	if err != nil {
		return nil, err
	}
	store, release, err := openStore(ctx, j)
	if err != nil {
		return nil, err
	}
	h := &Handle{done: make(chan struct{})}
	if err := h.start(ctx, j, lane, store); err != nil {
		return nil, errors.Join(err, release())
	}
	go func() {
		defer close(h.done)
		if h.job != nil {
			h.res, h.err = h.job.run()
		}
		h.err = errors.Join(h.err, release())
	}()
	return h, nil
}

func (h *Handle) start(ctx context.Context, j Job, lane protocol.Lane, store checkpoint.Storage) error {
	m, err := restored(ctx, j, store)
	if err != nil {
		return err
	}
	if m != nil {
		if err := j.checkRestore(m, lane); err != nil {
			return err
		}
		if err := checkState(j, m); err != nil {
			return err
		}
		// The process may have died between the final checkpoint and its commit, and nothing says whether it did. So what was
		// prepared is committed again, by a job that starts no reader.
		if m.Kind == protocol.Final && !hasPrepared(m) {
			h.res = Result{Outcome: AlreadyFinished, Checkpoint: m.ID, Records: m.Records}
			return nil
		}
	}
	if m != nil && m.Kind == protocol.Final {
		h.job, err = newJob(ctx, j, lane, store, m)
		return err
	}
	probe, cancel := context.WithTimeoutCause(ctx, j.Options.ProbeTimeout, fmt.Errorf("no answer within %s (runtime.probe_timeout)", j.Options.ProbeTimeout))
	defer cancel()
	if err := j.Source.Probe(probe); err != nil {
		return fmt.Errorf("source %s: %w", j.Source.Capability().Connector, err)
	}
	h.job, err = newJob(ctx, j, lane, store, m)
	return err
}

// Wait returns when the job has ended and has let go of everything, or when ctx ends.
func (h *Handle) Wait(ctx context.Context) (Result, error) {
	select {
	case <-h.done:
		return h.res, h.err
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// Done is closed when the job has ended.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Stop asks the job to take a savepoint behind which nothing is read, to commit, and to end. It returns at once.
func (h *Handle) Stop() {
	if h.job != nil {
		h.job.post(h.job.stop)
	}
}

// Cancel ends the job without another checkpoint. It returns at once.
func (h *Handle) Cancel() {
	if h.job != nil {
		h.job.post(func() { h.job.end(Result{Outcome: Cancelled}, nil) })
	}
}

// Savepoint takes a checkpoint that is kept until it is deleted, while the job goes on.
func (h *Handle) Savepoint(ctx context.Context) (sdk.CheckpointID, error) {
	if h.job == nil {
		return 0, ErrEnded
	}
	answer := make(chan savepointAnswer, 1)
	h.job.post(func() { h.job.savepoint(answer) })
	select {
	case a := <-answer:
		return a.id, a.err
	case <-h.done:
		return 0, ErrEnded
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

type savepointAnswer struct {
	id  sdk.CheckpointID
	err error
}

// Ready reports whether the job runs: every reader is registered. One that waits for its first split is.
func (h *Handle) Ready() bool { return h.job != nil && h.job.ready.Load() }

// never is a time that does not come.
var never = time.Unix(1<<40, 0)

// pending reports that t will come, or has come.
func pending(t time.Time) bool { return t.Before(never) }
