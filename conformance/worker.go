package conformance

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

// patience is how long a call of connector code may take before its task is given up, as in an engine (poll_cancel). Time passes in a
// bubble only when everybody waits, so a call that takes any time at all has waited for something.
const patience = 30 * time.Second

// worker is the one goroutine on which a reader or an enumerator is called.
type worker struct {
	tasks chan func()
	over  chan struct{} // closed by end
	id    string        // of the goroutine
	stuck bool          // case's goroutine only
}

func newWorker() *worker {
	w := &worker{tasks: make(chan func(), 1024), over: make(chan struct{})}
	started := make(chan struct{})
	go func() {
		w.id = goroutine()
		close(started)
		w.run()
	}()
	<-started
	return w
}

func (w *worker) run() {
	for {
		select {
		case task := <-w.tasks:
			task()
			continue
		default:
		}
		select {
		case task := <-w.tasks:
			task()
		case <-w.over:
			return
		}
	}
}

// end lets the goroutine go when it has done what it was given. What comes later is dropped: an answer may be on its way for ever.
func (w *worker) end() { close(w.over) }

// give hands a task over.
func (w *worker) give(task func()) {
	select {
	case w.tasks <- task:
	case <-w.over:
	}
}

// call runs f on the worker, and answers its error and how long it took. A panic is an error; ok is false when f did not return.
func (w *worker) call(what string, f func() error) (took time.Duration, err error, ok bool) { //nolint:revive // ok is about the other two
	if w.stuck {
		return 0, fmt.Errorf("%s: an earlier call did not return", what), false
	}
	began := time.Now()
	done := make(chan error, 1)
	w.give(func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("%s panicked: %v\n%s", what, v, debug.Stack())
			}
		}()
		done <- f()
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err = <-done:
		return time.Since(began), err, true
	case <-timer.C:
		w.stuck = true
		return patience, fmt.Errorf("%s did not return within %s", what, patience), false
	}
}

// here reports whether it is called on the worker.
func (w *worker) here() bool { return goroutine() == w.id }

// goroutine is the number of the calling goroutine. Nothing depends on it but what a test says.
func goroutine() string {
	var b [64]byte
	fields := bytes.Fields(b[:runtime.Stack(b[:], false)])
	return string(fields[1])
}

// strays lists the goroutines of this bubble that are neither the caller nor its own machinery, by their stacks.
func strays() (stacks []string) {
	self, bubble := goroutine(), ""
	b := make([]byte, 1<<20)
	blocks := bytes.Split(b[:runtime.Stack(b, true)], []byte("\n\n"))
	for _, block := range blocks {
		if id, in := header(block); id == self {
			bubble = in
		}
	}
	for _, block := range blocks {
		id, in := header(block)
		if in == "" || in != bubble || id == self || bytes.Contains(block, []byte("synctest.Run")) ||
			bytes.Contains(block, []byte("testing.tRunner")) || bytes.Contains(block, []byte("testingSynctestTest")) {
			continue
		}
		stacks = append(stacks, string(block))
	}
	return stacks
}

// header reads the first line of a stack: "goroutine 7 [select (durable), synctest bubble 3]:".
func header(block []byte) (id, bubble string) {
	line, _, _ := bytes.Cut(block, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return "", ""
	}
	if _, after, ok := bytes.Cut(line, []byte("synctest bubble ")); ok {
		bubble = strconv.Itoa(leading(after))
	}
	return string(fields[1]), bubble
}

func leading(digits []byte) (n int) {
	for _, d := range digits {
		if d < '0' || d > '9' {
			break
		}
		n = 10*n + int(d-'0')
	}
	return n
}
