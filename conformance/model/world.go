package model

import (
	"context"
	"log/slog"
	"sync"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

// World is a job without sinks: real coordinators and readers, and the reference. It lives in a bubble of testing/synctest; the
// test's goroutine calls its methods.
type World struct {
	ref  *reference
	all  []sdk.SplitID
	cfg  coordinator.Config
	port coordinator.Port
	loop *coordinator.Loop
	dog  *watchdog.Watchdog

	// mu guards what follows, the reference, and what the connector has.
	mu         sync.Mutex
	tasks      []*task
	enumerator *modelEnumerator
	reconciled bool
	attempt    protocol.Attempt
	id         sdk.CheckpointID
	pending    bool
	declined   bool
	cut        *coordinator.Restored // of the pending checkpoint, as far as it is known
	last       *coordinator.Restored // of the newest completed checkpoint
	onCut      func(*modelEnumerator)
}

// NewWorld starts a job. tracker bounds the assignments that no checkpoint contains.
func NewWorld(splits []sdk.SplitID, parallelism, tracker int, checkpoints bool) *World {
	w := &World{ref: newReference(splits), all: splits, dog: watchdog.New(time.Hour, time.Now)}
	w.cfg = coordinator.Config{
		Job: "model", Source: connector.Erase[split](source{w}), Checkpoints: checkpoints,
		TrackerSplits: tracker, TrackerBytes: 1 << 20, PayloadBytes: 4096, RetryInitial: time.Millisecond, RetryMax: 4 * time.Millisecond,
		Cancel: time.Hour, Workers: coordinator.NewWorkers(1), Watchdog: w.dog, Reports: reports{w}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Metrics: sdk.DiscardMetrics,
	}
	w.begin(parallelism, nil)
	return w
}

// begin starts readers with what they held, and an epoch.
func (w *World) begin(parallelism int, parts []protocol.ReaderState) {
	w.tasks, w.cfg.Parallelism = nil, parallelism
	for i := range parallelism {
		t := &task{w: w, id: sdk.ReaderID(i)}
		w.tasks = append(w.tasks, t)
		var splits []protocol.Split
		if parts != nil {
			splits = parts[i].Splits
		}
		t.prepare(splits)
	}
	w.epoch()
	for _, t := range w.tasks {
		t.loop.Start(context.Background())
	}
	synctest.Wait()
}

// epoch starts the next coordinator from the newest completed checkpoint. Readers that run are told to it.
func (w *World) epoch() {
	w.mu.Lock()
	w.cfg.Epoch++
	w.cfg.Restored, w.reconciled = w.last, false
	w.cfg.Stats = &telemetry.Coordinator{}
	w.loop = coordinator.New(w.cfg)
	w.port.Set(w.loop)
	w.mu.Unlock()
	w.loop.Start(context.Background())
	for _, t := range w.tasks {
		if t.open() {
			w.loop.ReaderUp(t.id, t.attempt, t, &telemetry.Reader{})
		}
	}
}

// do runs f on the coordinator's loop, now or when the reader has registered; never, when the epoch ends before.
func (w *World) do(by sdk.ReaderID, f func(*modelEnumerator)) {
	synctest.Wait()
	w.mu.Lock()
	if e := w.enumerator; e != nil {
		e.todo = append(e.todo, f)
	}
	w.mu.Unlock()
	w.port.RequestSplit(by, w.tasks[by].attempt)
	synctest.Wait()
}

// Assign sends up to n splits to a reader.
func (w *World) Assign(to sdk.ReaderID, n int) {
	w.do(to, func(e *modelEnumerator) { e.assign(to, n) })
}

// AssignInTheCut does so in the snapshot of the next checkpoint, when the barriers are not sent yet.
func (w *World) AssignInTheCut(to sdk.ReaderID, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCut = func(e *modelEnumerator) { e.assign(to, n) }
}

// NoMoreSplits tells a reader so.
func (w *World) NoMoreSplits(to sdk.ReaderID) {
	w.do(to, func(e *modelEnumerator) { _ = e.ctx.NoMoreSplits(to) }) // an error says that it has not registered
}

// Cut begins a checkpoint, unless one is under way.
func (w *World) Cut() {
	synctest.Wait()
	w.mu.Lock()
	if w.pending {
		w.mu.Unlock()
		return
	}
	w.id++
	w.pending, w.declined, w.cut = true, false, &coordinator.Restored{}
	id := w.id
	w.mu.Unlock()
	w.loop.Cut(id, protocol.Periodic)
	synctest.Wait()
	if w.declined {
		w.Abort()
	}
}

// Abort gives the checkpoint that is under way up.
func (w *World) Abort() {
	synctest.Wait()
	w.mu.Lock()
	pending, id := w.pending, w.id
	w.pending, w.ref.pending = false, nil
	w.mu.Unlock()
	if pending {
		w.loop.Abort(id)
		synctest.Wait()
	}
}

// Complete completes the checkpoint that is under way, if all its parts are there, and reports that it did. Then it is to be
// announced, unless the coordinator dies before it hears of it.
func (w *World) Complete() bool {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.pending || w.cut.Coordinator.Epoch == 0 || len(w.cut.Readers) < len(w.tasks) {
		return false
	}
	parts := map[sdk.ReaderID][2][]sdk.SplitID{}
	for _, r := range w.cut.Readers {
		parts[r.Reader] = [2][]sdk.SplitID{names(r.Splits), names(r.Finished)}
	}
	w.ref.complete(parts)
	w.pending, w.last = false, w.cut
	return true
}

// Announce tells the coordinator, and through it the readers, that the newest checkpoint completed.
func (w *World) Announce() {
	var finished []protocol.Split
	for _, r := range w.last.Readers {
		finished = append(finished, r.Finished...)
	}
	w.loop.Complete(w.id, finished)
	synctest.Wait()
}

func names(splits []protocol.Split) []sdk.SplitID {
	var out []sdk.SplitID
	for _, s := range splits {
		out = append(out, s.ID)
	}
	return out
}

// Settle heals everything, lets it come to rest, and returns what is wrong.
func (w *World) Settle() []string {
	for _, t := range w.tasks {
		t.deliver(Well)
		t.hold(false)
	}
	<-time.After(time.Second)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ref.settled()
	w.ref.checkEnumerator("at rest", w.enumerator.list)
	for _, t := range w.tasks {
		w.ref.checkReader("at rest", t.id, t.reader.splits)
	}
	return w.ref.problems
}

// Problems is what is wrong so far.
func (w *World) Problems() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ref.problems
}

// Stop ends all goroutines.
func (w *World) Stop() {
	for _, t := range w.tasks {
		t.end()
	}
	w.loop.Fence()
	<-w.loop.Done()
	synctest.Wait()
}

// reports is the job's side of a coordinator.
type reports struct{ w *World }

func (p reports) Reconciled(protocol.Epoch) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.reconcile()
}

// reconcile is when every reader is known to a new enumerator, and nothing is assigned yet. The caller holds the lock.
func (w *World) reconcile() {
	if !w.reconciled {
		w.reconciled = true
		w.ref.reconcile(w.enumerator.list)
	}
}

func (p reports) Snapshot(_ protocol.Epoch, id sdk.CheckpointID, state protocol.CoordinatorState) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.pending && id == p.w.id {
		p.w.cut.Coordinator = state
	}
}

func (p reports) Declined(_ protocol.Epoch, id sdk.CheckpointID, _ error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.declined = p.w.declined || id == p.w.id
}

func (reports) CheckpointWanted(protocol.Epoch) {}

func (p reports) ReaderBroken(id sdk.ReaderID, _ protocol.Attempt, err error) { p.fail(err) }
func (p reports) Failed(_ protocol.Epoch, err error)                          { p.fail(err) }

func (p reports) fail(err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.ref.wrong("the coordinator: %v", err)
}

// Parallelism is the number of readers.
func (w *World) Parallelism() int { return len(w.tasks) }

// End lets a reader end one of its splits, if it has any.
func (w *World) End(reader sdk.ReaderID, nth int) { w.tasks[reader].endSplit(nth) }

// Hold keeps a reader from its commands, or lets it go on.
func (w *World) Hold(reader sdk.ReaderID, hold bool) { w.tasks[reader].hold(hold) }

// Deliver says how commands reach a reader from now on.
func (w *World) Deliver(reader sdk.ReaderID, how Delivery) { w.tasks[reader].deliver(how) }

// Pass lets time pass, in which what was refused is offered again.
func (w *World) Pass() {
	<-time.After(20 * time.Millisecond)
	synctest.Wait()
}
