package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// coordinator drives an enumerator as an engine does: one goroutine, work beside it, nothing that overlaps. All fields but x and worker belong
// to that goroutine while a call runs, and to the case's between calls.
type coordinator[S sdk.Split, B Backend] struct {
	x           *trial[S, B]
	worker      *worker
	enumerator  sdk.Enumerator[S]
	codec       sdk.Codec[S]
	parallelism int
	metrics     *meters

	readers     []sdk.ReaderID
	assigned    map[sdk.SplitID]S
	owner       map[sdk.SplitID]sdk.ReaderID
	noMore      map[sdk.ReaderID]int
	finished    map[sdk.SplitID]bool // in a completed checkpoint
	refuse      int                  // assignments to be refused with ErrBackpressure
	requests    int                  // for a checkpoint
	checkpoints sdk.CheckpointID
	manual      bool // checkpoints are the case's business
	begins      bool // it only gives the case its splits

	tasks   map[string]*time.Timer
	running map[string]*running
	changed chan struct{} // something came back to the loop by itself
	sent    atomic.Int64  // events
	failure error         // that ended the epoch
	misuse  misuse
	waited  time.Duration // the longest call
	closed  bool          // case's goroutine only
	ended   bool          // worker only
}

// running is a call beside the loop.
type running struct {
	cancel context.CancelFunc
	next   func() // the newest call that came meanwhile
	gone   bool
}

// coordinates makes an enumerator that is not started. state is nil for a new job.
func (x *trial[S, B]) coordinates(source sdk.Source[S], parallelism int, state *sdk.VersionedBytes) *coordinator[S, B] {
	c := &coordinator[S, B]{
		x: x, worker: newWorker(), codec: source.SplitCodec(), parallelism: parallelism, metrics: newMeters(),
		assigned: map[sdk.SplitID]S{}, owner: map[sdk.SplitID]sdk.ReaderID{}, noMore: map[sdk.ReaderID]int{},
		finished: map[sdk.SplitID]bool{},
		tasks:    map[string]*time.Timer{}, running: map[string]*running{}, changed: make(chan struct{}, 1),
	}
	x.later(c.close)
	c.do("NewEnumerator", func() (err error) {
		c.enumerator, err = source.NewEnumerator(c, state)
		return err
	})
	if c.enumerator == nil {
		x.stop("NewEnumerator answered no enumerator and no error")
	}
	return c
}

// do makes one call that has to work.
func (c *coordinator[S, B]) do(what string, f func() error) {
	took, err, _ := c.worker.call(what, f)
	c.waited = max(c.waited, took)
	if err != nil {
		c.stop("%s: %v", what, err)
	}
}

// stop ends the case.
func (c *coordinator[S, B]) stop(format string, args ...any) {
	if c.begins {
		c.x.stopBefore(format, args...)
	}
	c.x.stop(format, args...)
}

func (c *coordinator[S, B]) start() { c.do("Start", c.enumerator.Start) }

// register adds a new attempt of a reader.
func (c *coordinator[S, B]) register(info sdk.ReaderInfo) {
	c.do("AddReader", func() error {
		if !slices.Contains(c.readers, info.ID) {
			c.readers = append(c.readers, info.ID)
			slices.Sort(c.readers)
		}
		return c.enumerator.AddReader(info)
	})
}

// giveBack returns splits: what a dead reader held beyond the checkpoint that its next attempt is restored from.
func (c *coordinator[S, B]) giveBack(splits ...S) {
	c.do("ReturnSplits", func() error {
		for _, s := range splits {
			delete(c.assigned, s.SplitID())
			delete(c.owner, s.SplitID())
		}
		return c.enumerator.ReturnSplits(splits)
	})
}

// checkpoint takes a snapshot without completing it.
func (c *coordinator[S, B]) checkpoint() (id sdk.CheckpointID, state sdk.VersionedBytes) {
	c.do("Snapshot", func() (err error) {
		c.checkpoints++
		id = c.checkpoints
		state, err = c.enumerator.Snapshot(id)
		return err
	})
	state.Data = slices.Clone(state.Data)
	return id, state
}

// complete says that a checkpoint is completed.
func (c *coordinator[S, B]) complete(id sdk.CheckpointID) {
	c.do("CheckpointComplete", func() error { return c.completed(id) })
}

// contains completes a checkpoint that contains the end of these splits. It may be told again of those that it was told of.
func (c *coordinator[S, B]) contains(finished []S) {
	handler, ok := c.enumerator.(sdk.FinishedHandler[S])
	finished = slices.DeleteFunc(slices.Clone(finished), func(s S) bool { return c.finished[s.SplitID()] })
	if len(finished) == 0 || !ok {
		return
	}
	id, _ := c.checkpoint()
	c.do("SplitsFinished", func() error {
		for _, s := range finished {
			delete(c.assigned, s.SplitID())
			delete(c.owner, s.SplitID())
			c.finished[s.SplitID()] = true
		}
		return handler.SplitsFinished(finished)
	})
	c.complete(id)
}

func (c *coordinator[S, B]) completed(id sdk.CheckpointID) error {
	if l, ok := c.enumerator.(sdk.CheckpointListener); ok {
		return l.CheckpointComplete(id)
	}
	return nil
}

// await waits until the enumerator has got as far as enough says, or the limit is over.
func (c *coordinator[S, B]) await(limit time.Duration, enough func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for over := false; ; {
		var there, dead bool
		c.look(func() { there, dead = enough(), c.failure != nil })
		if there || dead || over {
			return there && !dead
		}
		select {
		case <-c.changed:
		case <-timer.C:
			over = true
		}
	}
}

// give brings something back to the loop.
func (c *coordinator[S, B]) give(task func()) {
	c.worker.give(func() {
		task()
		select {
		case c.changed <- struct{}{}:
		default:
		}
	})
}

// all waits until n splits are assigned and answers them in the order of their ids.
func (c *coordinator[S, B]) all(n int) []S {
	have := 0
	enough := c.await(c.x.bearable(c.x.h.Discovery), func() bool {
		have = len(c.assigned)
		return have >= n
	})
	if !enough {
		c.stop("%d of %d splits were assigned within %s (the epoch's error: %v)", have, n, c.x.h.Discovery, c.lost())
	}
	return c.list()
}

// look reads what belongs to the loop.
func (c *coordinator[S, B]) look(f func()) {
	c.do("the coordinator's loop", func() error {
		f()
		return nil
	})
}

// list answers the assigned splits in the order of their ids.
func (c *coordinator[S, B]) list() (splits []S) {
	c.look(func() {
		for _, id := range slices.Sorted(maps.Keys(c.assigned)) {
			splits = append(splits, c.assigned[id])
		}
	})
	return splits
}

// holdings answers what each reader was assigned.
func (c *coordinator[S, B]) holdings() map[sdk.ReaderID][]sdk.SplitID {
	held := map[sdk.ReaderID][]sdk.SplitID{}
	c.look(func() {
		for _, id := range slices.Sorted(maps.Keys(c.owner)) {
			held[c.owner[id]] = append(held[c.owner[id]], id)
		}
	})
	return held
}

// lost answers why the epoch ended, or nil.
func (c *coordinator[S, B]) lost() (err error) {
	c.look(func() { err = c.failure })
	return err
}

func (c *coordinator[S, B]) close() {
	if c.closed {
		return
	}
	c.closed = true
	if c.enumerator != nil {
		_, _, _ = c.worker.call("Close", func() error {
			err := c.enumerator.Close()
			c.ended = true
			return err
		})
	}
	_, _, _ = c.worker.call("end", func() error {
		for key := range c.tasks {
			c.drop(key)
		}
		for key := range c.running {
			c.drop(key)
		}
		return nil
	})
	c.x.last = append(c.x.last, func() { c.x.report(&c.misuse) })
	// The goroutine ends with the case: a late result may still be on its way to it.
	c.x.last = append(c.x.last, c.worker.end)
}

// on reports whether a call of the context may be made where it is made, and notes it when not: it then has no effect.
func (c *coordinator[S, B]) on(what string) bool {
	switch {
	case !c.worker.here():
		c.misuse.note("%s of the EnumeratorContext was called on another goroutine than the coordinator's loop", what)
	case c.ended:
		c.misuse.note("%s of the EnumeratorContext was called after Close", what)
	default:
		return true
	}
	return false
}

// errElsewhere answers calls of the context that are not made on its loop.
var errElsewhere = errors.New("not on the coordinator's loop")

// Call implements [sdk.Scheduler].
func (c *coordinator[S, B]) Call(key string, work func(context.Context) (any, error), done func(any, error), o sdk.CallOptions) {
	if !c.on("Call") {
		return
	}
	if r := c.running[key]; r != nil {
		if o.Overlap == sdk.CoalesceOne {
			r.next = func() { c.Call(key, work, done, o) }
		}
		return
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = time.Minute
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel}
	c.running[key] = r
	go func() {
		defer cancel()
		if !sleep(ctx, o.Delay) {
			return
		}
		bounded, stop := context.WithTimeout(ctx, timeout)
		value, err := guarded(key, func() (any, error) { return work(bounded) })
		stop()
		c.give(func() { c.returned(key, r, value, err, done, o) })
	}()
}

// returned is back on the loop.
func (c *coordinator[S, B]) returned(key string, r *running, value any, err error, done func(any, error), o sdk.CallOptions) {
	if r.gone || c.ended {
		return
	}
	delete(c.running, key)
	if err != nil && o.OnFailure == sdk.FailCoordinator {
		c.failure = err
		return
	}
	done(value, err)
	if r.next != nil {
		r.next()
	}
}

// Schedule implements [sdk.Scheduler].
func (c *coordinator[S, B]) Schedule(key string, delay time.Duration, task func()) {
	if !c.on("Schedule") {
		return
	}
	if t := c.tasks[key]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(delay, func() {
		c.give(func() {
			if c.tasks[key] == t && !c.ended {
				delete(c.tasks, key)
				task()
			}
		})
	})
	c.tasks[key] = t
}

// Cancel implements [sdk.Scheduler].
func (c *coordinator[S, B]) Cancel(key string) {
	if !c.on("Cancel") {
		return
	}
	c.drop(key)
}

func (c *coordinator[S, B]) drop(key string) {
	if t := c.tasks[key]; t != nil {
		t.Stop()
		delete(c.tasks, key)
	}
	if r := c.running[key]; r != nil {
		r.gone = true
		r.cancel()
		delete(c.running, key)
	}
}

// Parallelism implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) Parallelism() int { return c.parallelism }

// Readers implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) Readers() []sdk.ReaderID {
	if !c.on("Readers") {
		return nil
	}
	return slices.Clone(c.readers)
}

// Assign implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) Assign(reader sdk.ReaderID, splits []S) error {
	if !c.on("Assign") {
		return errElsewhere
	}
	if !slices.Contains(c.readers, reader) {
		c.misuse.note("Assign to reader %d, which has not registered", reader)
		return fmt.Errorf("reader %d is not registered", reader)
	}
	if c.refuse > 0 {
		c.refuse--
		return sdk.ErrBackpressure
	}
	for _, s := range splits {
		id := s.SplitID()
		if _, twice := c.assigned[id]; twice {
			c.misuse.note("split %q was assigned although reader %d has it", id, c.owner[id])
		}
		if c.finished[id] {
			c.misuse.note("split %q was assigned although a completed checkpoint contains its end", id)
		}
		c.assigned[id], c.owner[id] = s, reader
	}
	return nil
}

// NoMoreSplits implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) NoMoreSplits(reader sdk.ReaderID) error {
	if !c.on("NoMoreSplits") {
		return errElsewhere
	}
	c.noMore[reader]++
	return nil
}

// SendEvent implements [sdk.EnumeratorContext]: it loses the event.
func (c *coordinator[S, B]) SendEvent(sdk.ReaderID, sdk.Event) bool {
	c.sent.Add(1)
	return false
}

// RequestCheckpoint implements [sdk.EnumeratorContext]: the checkpoint comes a moment later and completes, unless the case takes them itself.
func (c *coordinator[S, B]) RequestCheckpoint() bool {
	if !c.on("RequestCheckpoint") {
		return false
	}
	c.requests++
	if c.manual || c.requests > 1 {
		return true
	}
	c.Schedule("conformance-checkpoint", c.x.moment(), func() {
		c.requests = 0
		c.checkpoints++
		id := c.checkpoints
		if _, err := c.enumerator.Snapshot(id); err != nil {
			c.failure = fmt.Errorf("snapshot: %w", err)
			return
		}
		if err := c.completed(id); err != nil {
			c.failure = fmt.Errorf("CheckpointComplete: %w", err)
		}
	})
	return true
}

// SplitCodec implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) SplitCodec() sdk.Codec[S] { return c.codec }

// Logger implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Metrics implements [sdk.EnumeratorContext].
func (c *coordinator[S, B]) Metrics() sdk.Metrics { return c.metrics }

// sleep waits for d, and reports whether ctx lasted as long. It makes no timer that is due at once: whoever looks at one runs it, beside those
// that its bubble runs at that moment, and the race detector (of Go 1.26) crashes when both happen together.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// guarded turns a panic of work into its error, as an engine does.
func guarded(key string, work func() (any, error)) (value any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("call %s panicked: %v", key, v)
		}
	}()
	return work()
}

// splits discovers n splits with an enumerator of its own, and answers them in the order of their ids.
func (x *trial[S, B]) splits(source sdk.Source[S], n int) []S {
	c := x.coordinates(source, 1, nil)
	c.begins = true
	c.start()
	c.register(sdk.ReaderInfo{})
	splits := c.all(n)
	c.close()
	if len(splits) != n {
		x.stopBefore("a system with %d parts has %d splits", n, len(splits))
	}
	return splits
}
