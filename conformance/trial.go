package conformance

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
)

// maxFailures is how many failures of a case are kept: the first ones explain the rest.
const maxFailures = 5

// trial is one case on its way. Its run goroutine is the case's own; loops and connectors have theirs.
type trial[S sdk.Split, B Backend] struct {
	h Harness[S, B]
	b B // made by start

	started  bool
	appended []int    // how many values each part was given
	undo     []func() // in reverse, at the end
	last     []func() // after the backend is closed

	mu struct {
		sync.Mutex
		failures []string
		dropped  int
		skipped  string
		before   bool // the first failure is of something that every case begins with
	}
}

// run runs the case on a goroutine that fail-now and skip can end, and then takes everything down.
func (x *trial[S, B]) run(scenario func(*trial[S, B])) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				x.fail("panic: %v\n%s", v, debug.Stack())
			}
		}()
		scenario(x)
	}()
	<-done
	x.end()
}

// end closes what the case has opened, and the backend last.
func (x *trial[S, B]) end() {
	if x.started {
		x.b.Resume()
	}
	for i := len(x.undo) - 1; i >= 0; i-- {
		x.undo[i]()
	}
	x.undo = nil
	if x.started {
		x.b.Close()
	}
	x.started = false
	x.settle()
	for _, f := range x.last {
		f()
	}
	x.last = nil
	x.settle()
}

func (x *trial[S, B]) later(f func()) { x.undo = append(x.undo, f) }

// fail notes what was seen and goes on.
func (x *trial[S, B]) fail(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.mu.failures) == maxFailures {
		x.mu.dropped++
		return
	}
	x.mu.failures = append(x.mu.failures, fmt.Sprintf(format, args...))
}

// stop notes what was seen and ends the case. Only on the case's goroutine.
func (x *trial[S, B]) stop(format string, args ...any) {
	x.fail(format, args...)
	runtime.Goexit()
}

// stopBefore ends the case with the error of something that it only begins with: what usually fails the case is not the cause.
func (x *trial[S, B]) stopBefore(format string, args ...any) {
	x.mu.Lock()
	x.mu.before = len(x.mu.failures) == 0
	x.mu.Unlock()
	x.stop(format, args...)
}

// must ends the case with an error that it did not expect.
func (x *trial[S, B]) must(what string, err error) {
	if err != nil {
		x.stop("%s: %v", what, err)
	}
}

// skip ends the case. Only on the case's goroutine.
func (x *trial[S, B]) skip(format string, args ...any) {
	x.mu.Lock()
	x.mu.skipped = fmt.Sprintf(format, args...)
	x.mu.Unlock()
	runtime.Goexit()
}

func (x *trial[S, B]) failed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.mu.failures) > 0
}

// outcome fills in what came of the case.
func (x *trial[S, B]) outcome(r *Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.Failures, r.Before = x.mu.failures, x.mu.before
	if x.mu.dropped > 0 {
		r.Failures = append(r.Failures, fmt.Sprintf("and %d more", x.mu.dropped))
	}
	if len(r.Failures) == 0 {
		r.Skipped = x.mu.skipped
	}
}

// start makes the backend.
func (x *trial[S, B]) start(parts int) {
	x.needs(parts)
	x.b = x.h.Backend(parts)
	x.started = true
	x.appended = make([]int, parts)
}

// needs skips a case for which the system is too small.
func (x *trial[S, B]) needs(parts int) {
	if most := x.h.Parts; most > 0 && parts > most {
		x.skip("the system has at most %d of %d parts (Harness.Parts)", most, parts)
	}
}

// append adds n values to a part.
func (x *trial[S, B]) append(part, n int) {
	values := make([]string, n)
	for i := range values {
		values[i] = valueOf(part, x.appended[part])
		x.appended[part]++
	}
	x.b.Append(part, values...)
}

// total is how many values were appended.
func (x *trial[S, B]) total() (n int) {
	for _, k := range x.appended {
		n += k
	}
	return n
}
