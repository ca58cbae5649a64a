package base

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// batch is what travels through the hand-over. applied says which changes the fetcher had applied when it fetched, so
// that the loop can tell data of a split that was removed and added again from data of its earlier life.
type batch[E any] struct {
	Fetched[E]
	applied uint64
}

// fetcher is one goroutine that owns one split reader for its whole life. Controls reach it as pending changes plus the
// cancellation of the running fetch; data leaves through the queue. With nothing to fetch it waits at the bell: an
// idle fetcher costs a parked goroutine, and never ending it means that no split can be added to one that is just going.
//
// The goroutine is started by start, asked to end by stop, and waited for at quiet (no fetch will run again) and then
// done (the split reader is closed). Between the two it waits for release, because batches may use what the split
// reader owns.
type fetcher[E any, S sdk.Split] struct {
	index   int
	maxLate int // fetches that may bring elements of a paused split, from what a client had of it
	create  func() (SplitReader[E, S], error)
	queue   *handover[batch[E]]
	notify  func()
	log     *slog.Logger
	meters  meters

	bell     chan struct{} // one ring: look at mu again
	stopping chan struct{} // closed by stop
	released chan struct{} // closed by release
	quiet    chan struct{} // closed by the goroutine
	done     chan struct{} // closed by the goroutine

	// The goroutine's own.
	reader  SplitReader[E, S]
	roster  roster
	applied uint64
	empty   throttle

	// Written before failed is set, and before done is closed.
	err      error
	closeErr error
	failed   atomic.Bool

	mu struct {
		sync.Mutex
		pending changes[S]
		posted  uint64 // counts posts; applied follows it
		idle    bool   // nothing assigned, nothing pending: no error and no data can come
		woken   bool   // the context of cancel was or will be cancelled
		stopped bool
		cancel  context.CancelCauseFunc
	}
}

func (f *fetcher[E, S]) start() { go f.run() }

// post hands over a change, interrupts the running fetch, and answers the number by which batches that know of it can be
// told. Loop only.
func (f *fetcher[E, S]) post(change func(*changes[S])) uint64 {
	f.mu.Lock()
	change(&f.mu.pending)
	f.mu.posted++
	posted := f.mu.posted
	f.mu.idle = false
	f.mu.Unlock()
	f.interrupt(sdk.ErrWakeup)
	return posted
}

// interrupt cancels the context of the running or next fetch and makes the goroutine look at mu. Any goroutine.
func (f *fetcher[E, S]) interrupt(cause error) {
	f.mu.Lock()
	f.mu.woken = true
	cancel := f.mu.cancel
	f.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

// stop asks the goroutine to fetch no more. Loop only, once.
func (f *fetcher[E, S]) stop() {
	f.mu.Lock()
	f.mu.stopped = true
	f.mu.Unlock()
	close(f.stopping)
	f.interrupt(sdk.ErrClosed)
}

// isIdle reports that nothing is assigned or pending: every batch is in the queue by now, and no error will come.
func (f *fetcher[E, S]) isIdle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.idle
}

func (f *fetcher[E, S]) run() {
	err := fmt.Errorf("split reader %d: its goroutine was ended by runtime.Goexit", f.index)
	// Deferred, so that a Goexit, which a failing test assertion does, ends the reader instead of blocking it.
	defer func() { f.end(err) }()
	err = f.loop()
}

func (f *fetcher[E, S]) end(err error) {
	defer close(f.done)
	if err != nil {
		f.err = err
		f.failed.Store(true)
		f.notify()
	}
	close(f.quiet)
	<-f.released
	if f.reader != nil {
		f.closeErr = f.guard("close", f.reader.Close)
	}
}

func (f *fetcher[E, S]) loop() error {
	err := f.guard("create", func() (err error) {
		f.reader, err = f.create()
		if err == nil && f.reader == nil {
			err = errors.New("Config.Fetcher returned nil")
		}
		return err
	})
	var ctx context.Context
	for err == nil {
		var work changes[S]
		var stopped bool
		ctx, work, stopped = f.next(ctx)
		switch {
		case stopped:
			return nil
		case !work.empty():
			err = f.change(&work)
		case f.roster.active == 0:
			f.park()
		default:
			err = f.fetch(ctx)
		}
	}
	return err
}

// next takes what is pending and makes sure that the context is fresh, in one step: whoever posts or wakes after it
// cancels the context that it returns, and whoever did so before is served by its result. So no wakeup is lost, and none
// is left over to spoil a later fetch.
func (f *fetcher[E, S]) next(ctx context.Context) (context.Context, changes[S], bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.stopped {
		return ctx, changes[S]{}, true
	}
	if ctx == nil || f.mu.woken {
		ctx, f.mu.cancel = context.WithCancelCause(context.Background())
		f.mu.woken = false
	}
	work := f.mu.pending
	f.mu.pending = changes[S]{}
	f.applied = f.mu.posted
	return ctx, work, false
}

func (f *fetcher[E, S]) change(work *changes[S]) error {
	for _, ch := range apply(&f.roster, work) {
		if err := f.guard("handle splits", func() error { return f.reader.HandleSplits(ch) }); err != nil {
			return err
		}
	}
	return nil
}

// park waits until there is something to look at. Becoming idle may be what the end of input waits for.
func (f *fetcher[E, S]) park() {
	f.mu.Lock()
	became := f.roster.empty() && f.mu.pending.empty() && !f.mu.idle
	f.mu.idle = f.mu.idle || became
	f.mu.Unlock()
	if became {
		f.notify()
	}
	<-f.bell
}

// fetch runs one Fetch and hands over what it brought, in this order: data first, then the error that came with it.
func (f *fetcher[E, S]) fetch(ctx context.Context) error {
	var got Fetched[E]
	started := time.Now()
	err := f.guard("fetch", func() (err error) {
		got, err = f.reader.Fetch(ctx)
		return err
	})
	woken := err != nil && isWakeup(ctx, err)
	if woken {
		err = nil
	}
	size, elements, wrong := f.measure(&got)
	if wrong != nil {
		got, err = Fetched[E]{Release: got.Release}, errors.Join(wrong, err)
	}
	f.meters.fetched(size, elements)
	if elements > 0 || len(got.Finished) > 0 || got.Release != nil {
		f.handOver(batch[E]{got, f.applied}, size)
	}
	if err != nil || elements > 0 || len(got.Finished) > 0 {
		f.empty.reset()
		return err
	}
	if ctx.Err() == nil {
		f.empty.wait(ctx, time.Since(started))
	}
	return nil
}

// isWakeup tells the end of ctx from a failure. Client libraries answer the cause or, if older, the plain cancellation;
// a wakeup that somebody stored and returned late is none of our fetch, but no failure either.
func isWakeup(ctx context.Context, err error) bool {
	if errors.Is(err, sdk.ErrWakeup) {
		return true
	}
	return ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled))
}

// measure sums up a fetch and takes its finished splits off the roster. Data of a split that is not assigned would be
// dropped by the loop without a trace, so it is an error here. So is data of a paused split that goes on to come: the loop
// would gather it without bound.
func (f *fetcher[E, S]) measure(got *Fetched[E]) (size int64, elements int, err error) {
	for i := range got.Chunks {
		c := &got.Chunks[i]
		if !f.roster.has(c.Split) {
			return 0, 0, fmt.Errorf("split reader %d: Fetch returned %d elements of split %q, which is not assigned to it (never added, "+
				"removed, or finished before): drop them in Fetch, or correct the id", f.index, len(c.Elements), c.Split)
		}
		size += max(0, c.Bytes)
		elements += len(c.Elements)
		if len(c.Elements) == 0 || i > 0 && got.Chunks[i-1].Split == c.Split {
			continue
		}
		if late := f.roster.arrive(c.Split); late > f.maxLate {
			return 0, 0, fmt.Errorf("split reader %d: Fetch goes on to return elements of split %q, %d times since HandleSplits was told that it is paused "+
				"(Change.Paused): leave it out until it is resumed, what is fetched of it waits in memory", f.index, c.Split, late)
		}
	}
	for _, id := range got.Finished {
		if !f.roster.drop(id) {
			return 0, 0, fmt.Errorf("split reader %d: Fetch reported split %q as finished, which is not assigned to it (never added, removed, or finished "+
				"before): forget a split that is finished", f.index, id)
		}
	}
	return size, elements, nil
}

// handOver waits for room. Neither wakeups nor controls end the wait: they are served before the next fetch, and there is
// none before this batch has gone. Only stop does, and then the loop drops the batch, or, when it is gone, we do.
func (f *fetcher[E, S]) handOver(b batch[E], size int64) {
	for {
		accepted, first := f.queue.offer(b, size)
		if accepted {
			if first {
				f.notify()
			}
			return
		}
		select {
		case <-f.queue.room:
		case <-f.stopping:
			if !f.queue.leave(b, size) && b.Release != nil {
				_ = f.guard("release", func() error { b.Release(); return nil }) // logged; nobody is left to tell
			}
			return
		}
	}
}

// guard turns a panic of the author's code into an error. The stack goes to the log: an error is for users.
func (f *fetcher[E, S]) guard(what string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f.log.Error("panic in a split reader", "fetcher", f.index, "during", what, "panic", p, "stack", string(debug.Stack()))
			if cause, ok := p.(error); ok {
				err = fmt.Errorf("split reader %d: panic in %s at %s: %w", f.index, what, site(), cause)
				return
			}
			err = fmt.Errorf("split reader %d: panic in %s at %s: %v", f.index, what, site(), p)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("split reader %d: %s: %w", f.index, what, err)
	}
	return nil
}
