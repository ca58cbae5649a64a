package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// Limits of virtual time. They are far beyond what a job needs: whoever passes them hangs.
const (
	endLimit   = 3 * time.Minute // from calm to the end of the job
	leaveLimit = 5 * time.Minute // from a stop, a cancel or a death until the engine has let go
	lookEvery  = 50 * time.Millisecond
)

// life is one process that runs the job.
type life struct {
	world  *world
	number int
	plan   *LifePlan
	chaos  *chaos
	source *source
	codec  sdk.Codec[fake.Split]

	dead     bool // the ledger's lock guards it: nothing that a dead life does changes the ledger
	diskDead atomic.Bool
	diskOps  atomic.Uint64
	dying    sync.Once
	finished bool // the job is known to have finished before
	metrics  *telemetry.Registry
	looks    atomic.Int64

	born    time.Time // by the clock of the bubble
	network *network
	order   *order
	striker *striker
}

func newLifeOf(w *world, number int, plan *LifePlan) *life {
	l := &life{world: w, number: number, plan: plan, chaos: newChaos(mix(w.plan.Seed)^uint64(plan.Number), plan)}
	l.chaos.die = l.die
	l.chaos.note = l.note
	l.born = time.Now()
	l.network, l.order, l.striker = newNetwork(l), newOrder(l), newStriker(l)
	return l
}

func (l *life) note(format string, args ...any) {
	l.world.history.note(fmt.Sprintf("life %d: ", l.number)+format, args...)
}

func (l *life) violate(format string, args ...any) {
	l.world.history.violate(fmt.Sprintf("life %d: ", l.number)+format, args...)
}

func (l *life) isDead() bool {
	l.world.ledger.mu.Lock()
	defer l.world.ledger.mu.Unlock()
	return l.dead
}

// die ends the process at this very moment: whatever it does from now on changes nothing outside of it.
func (l *life) die(why string) {
	l.dying.Do(func() {
		l.note("dies %s", why)
		l.world.ledger.mu.Lock()
		l.dead = true
		l.world.ledger.mu.Unlock()
		l.diskDead.Store(true)
		close(l.chaos.dead)
	})
}

// run lives the life, and reports whether the job has ended for good.
func (l *life) run(quiet bool) (done bool) {
	l.note("begins: %s x %d, interval %s, %s", l.plan.Exchange, l.plan.Parallelism, l.plan.Interval, l.plan.End)
	disk := l.world.disk
	disk.Limit(l.plan.Room)
	disk.Inject(l.inject)
	var err error
	if l.source, err = newSourceOf(l); err != nil {
		l.violate("the plan's source: %v", err)
		return true
	}
	l.codec = l.source.SplitCodec()
	if quiet {
		l.calmDown()
	}
	res, err := l.work()
	l.calmDown() // frees what was left behind
	l.release()
	if l.isDead() {
		l.world.disk = fateOf(l.plan.End, l.chaos.seed)(disk)
		return false
	}
	l.note("ended: %+v, %v", res, err)
	return l.judge(res, err, quiet)
}

func (l *life) calmDown() {
	l.chaos.calmDown()
	l.source.Release()
	l.world.disk.Limit(-1)
}

// release frees what this process left behind, when it is over.
func (l *life) release() {
	l.source.Release()
}

// judge says whether the end of a living process is one that its faults explain.
func (l *life) judge(res engine.Result, err error, quiet bool) (done bool) {
	rows := l.world.ledger.rows()
	switch {
	case err != nil && (quiet || !explained(err)):
		l.violate("failed without a reason: %v", err)
		return true
	case err != nil:
		return false
	case l.finished:
		return res.Outcome == engine.AlreadyFinished
	}
	switch res.Outcome {
	case engine.Finished, engine.AlreadyFinished, engine.Stopped:
		if res.Records != int64(rows) {
			l.violate("the job ended with %d records, and %d are visible", res.Records, rows)
		}
		if res.Outcome == engine.Stopped {
			return len(l.world.plan.Later) > 0 && rows == l.world.plan.total()
		}
		return true
	case engine.Cancelled:
	}
	return false
}

// explained reports whether an error is the consequence of a fault.
func explained(err error) bool {
	for _, known := range []error{
		errInjected, errDead, fake.ErrFault, engine.ErrSavepoint, checkpoint.ErrUncertain, checkpointtest.ErrStopped, reader.ErrStuck,
		coordinator.ErrStuck, syscall.ENOSPC, syscall.EIO, context.DeadlineExceeded, coordinator.ErrReserved,
		engine.ErrLeftBehind,
	} {
		if errors.Is(err, known) {
			return !errors.Is(err, sdk.ErrCorrupt) && !errors.Is(err, sdk.ErrIncompatibleState)
		}
	}
	return false
}

// work runs the engine until the life is over.
func (l *life) work() (engine.Result, error) {
	ctx := context.Background()
	files, err := checkpoint.OpenDir(ctx, slowDir{l.world.disk, l}, checkpoint.FileOptions{Job: "simulated"})
	if err != nil {
		return engine.Result{}, err
	}
	s := store{files, l}
	h, err := l.start(ctx, s)
	if err != nil {
		return engine.Result{}, errors.Join(err, l.closeStore(files))
	}
	l.steer(h)
	res, err := l.leave(ctx, h)
	return res, errors.Join(err, l.closeStore(files))
}

func (l *life) closeStore(files *checkpoint.FileStore) error {
	if l.isDead() {
		return nil // nobody closes anything
	}
	return files.Close()
}

func (l *life) start(ctx context.Context, s checkpoint.Storage) (*engine.Handle, error) {
	l.metrics = telemetry.NewRegistry("simulated", telemetry.Options{})
	return engine.Start(ctx, engine.Job{
		Name: "simulated", Parallelism: l.plan.Parallelism, Source: engine.From(l.source), Sink: sink{l}, Exchange: l.plan.Exchange,
		Checkpoint: engine.Checkpoint{Interval: l.plan.Interval, Keep: l.plan.Keep, Storage: s},
		Options:    &l.plan.Options, Metrics: l.metrics, Listener: l.listener(), Now: l.now,
		Seams: &seam.Seams{Reach: l.striker.reach, Offer: l.network.offer, Tell: l.network.tell},
	})
}

func (l *life) listener() engine.Listener {
	return engine.Listener{
		Restored: func(m *protocol.Manifest) { l.note("restores checkpoint %d, %d records", m.ID, m.Records) },
		CheckpointDone: func(m *protocol.Manifest, took time.Duration) {
			l.striker.completed(m.ID)
			l.note("checkpoint %d is done after %s, %d records", m.ID, took, m.Records)
			if rows := l.world.ledger.rows(); int64(rows) != m.Records && !l.isDead() {
				l.violate("checkpoint %d is done with %d records, and %d are visible", m.ID, m.Records, rows)
			}
			l.checkBounds()
		},
		CheckpointAborted: func(id sdk.CheckpointID, err error) {
			l.note("checkpoint %d is given up: %v", id, err)
			l.striker.gaveUp(id)
		},
		Restarting: func(what string, err error, after time.Duration) {
			l.note("%s is restarted after %s: %v", what, after, err)
		},
	}
}

// steer does what the plan says while the job runs, until the job has to end.
func (l *life) steer(h *engine.Handle) {
	end := after(l.plan.End.After, l.plan.End.Kind == Crash || l.plan.End.Kind == Stop || l.plan.End.Kind == Cancel)
	calm := after(l.plan.Calm, true)
	limit := time.After(l.plan.Calm + endLimit)
	grace := l.grace()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for _, at := range l.plan.Savepoints {
		time.AfterFunc(at, func() { go l.savepoint(h) })
	}
	for {
		select {
		case <-h.Done():
			return
		case <-l.chaos.dead:
			h.Cancel()
			return
		case <-calm:
			l.note("is calm from now on")
			l.calmDown()
		case <-end:
			l.finish(h)
			return
		case <-grace:
			l.die("after the strike")
			h.Cancel()
			return
		case <-look.C:
			if l.endless() && l.world.ledger.rows() == l.world.plan.total() {
				l.note("is stopped, everything is visible")
				h.Stop()
				return
			}
		case <-limit:
			l.violate("the job does not end, %s after the last fault; %d of %d records are visible", endLimit,
				l.world.ledger.rows(), l.world.plan.total())
			l.world.history.capture()
			h.Cancel()
			return
		}
	}
}

// grace fires when the process dies because of a strike.
func (l *life) grace() <-chan struct{} {
	s := l.plan.Strike
	if s == nil || s.Grace == 0 {
		return nil
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-l.striker.struck:
			_ = l.chaos.wait(context.Background(), s.Grace)
		case <-l.chaos.calm:
		case <-l.chaos.dead:
		}
		close(over)
	}()
	return over
}

// endless: a job that never ends by itself is over when everything is visible, unless another end is to come.
func (l *life) endless() bool {
	return len(l.world.plan.Later) > 0 && (l.plan.End.Kind == RunOn || l.plan.End.Kind == CrashAt)
}

// finish ends the life as planned.
func (l *life) finish(h *engine.Handle) {
	switch l.plan.End.Kind {
	case Crash, CrashAt:
		l.die("at its time")
		h.Cancel()
	case Stop:
		l.note("is stopped")
		h.Stop()
	case Cancel:
		l.note("is cancelled")
		h.Cancel()
	case RunOn:
	}
}

// leave waits until the engine has let go. A dead one only gives its goroutines back.
func (l *life) leave(ctx context.Context, h *engine.Handle) (engine.Result, error) {
	if l.isDead() {
		l.calmDown()
	}
	ctx, cancel := context.WithTimeout(ctx, l.plan.Options.StopTimeout+leaveLimit)
	defer cancel()
	dead := context.AfterFunc(ctx, func() {
		l.violate("the engine does not let go")
		l.world.history.capture()
	})
	defer dead()
	for {
		select {
		case <-h.Done():
			dead()
			return h.Wait(ctx)
		case <-l.chaos.dead: // while it was stopping
			l.calmDown()
			h.Cancel()
			return h.Wait(ctx)
		case <-ctx.Done():
			return h.Wait(ctx)
		}
	}
}

// savepoint asks for one, which may fail like every checkpoint.
func (l *life) savepoint(h *engine.Handle) {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	id, err := h.Savepoint(ctx)
	l.note("savepoint %d: %v", id, err)
	if err != nil && !errors.Is(err, engine.ErrSavepoint) && !errors.Is(err, engine.ErrEnded) {
		l.violate("savepoint: %v", err)
	}
}

// after is a channel that fires after d, or never.
func after(d time.Duration, really bool) <-chan time.Time {
	if !really {
		return nil
	}
	return time.After(d)
}
