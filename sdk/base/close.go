package base

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Close implements [sdk.Reader]. It cancels running fetches with [sdk.ErrClosed], drops and releases what was not emitted,
// and then has the split readers closed: never while a batch that may use their buffers is still in somebody's hands.
//
// A fetch that ignores its context is waited for as long as CloseTimeout and then abandoned with an error that says so;
// when it returns after all, its goroutine drops what it brought and closes its split reader by itself. Closing twice is
// allowed.
func (r *Reader[E, S, St]) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, f := range r.feeds {
		f.stop()
	}
	deadline := make(chan struct{})
	timer := time.AfterFunc(r.cfg.CloseTimeout, func() { close(deadline) })
	defer timer.Stop()

	errs := r.await("a fetch that does not return", deadline, func(f *feed[E, S, St]) <-chan struct{} { return f.quiet })
	r.release()
	if late := r.await("closing the split reader", deadline, func(f *feed[E, S, St]) <-chan struct{} { return f.done }); len(errs) == 0 {
		errs = late
	}
	for _, f := range r.feeds {
		select {
		case <-f.done:
			errs = append(errs, f.closeErr)
		default: // abandoned and named already
		}
	}
	return errors.Join(errs...)
}

// await waits for each fetcher until the deadline and names those that are late.
func (r *Reader[E, S, St]) await(what string, deadline <-chan struct{}, signal func(*feed[E, S, St]) <-chan struct{}) (late []error) {
	for _, f := range r.feeds {
		select {
		case <-signal(f):
			continue
		default:
		}
		select {
		case <-signal(f):
		case <-deadline:
			late = append(late, fmt.Errorf("split reader %d: abandoned after %s: %s (it must return soon when its context ends): %w",
				f.index, r.cfg.CloseTimeout, what, sdk.ErrClosed))
		}
	}
	return late
}

// release drops everything that was fetched and not emitted, then lets the split readers be closed.
func (r *Reader[E, S, St]) release() {
	defer func() { // also when a Release panics, or their goroutines would wait for ever
		for _, f := range r.feeds {
			close(f.released)
		}
	}()
	for _, s := range r.list {
		s.discard()
	}
	for _, f := range r.feeds {
		for _, b := range f.queue.close() {
			if b.Release != nil {
				b.Release()
			}
		}
	}
}
