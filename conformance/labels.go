package conformance

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"github.com/penstock-dev/penstock/sdk"
)

// labelKey is the profiler label that marks a worker.
const labelKey = "penstock_conformance"

var labelled atomic.Int64 // numbers the workers of a process

func loopScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"reader/stays_on_its_loop":     readerStaysOnItsLoop[S, B],
		"reader/labels_are_restored":   labelsAreRestored[S, B],
		"enumerator/stays_on_its_loop": enumeratorStaysOnItsLoop[S, B],
	}
}

// mark gives the worker's goroutine a label that no other has, and answers what tells whether it still has it.
func (w *worker) mark() (kept func() bool) {
	value := fmt.Sprint(labelled.Add(1))
	w.give(func() {
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, value)))
	})
	return func() bool {
		answer := make(chan bool, 1)
		w.give(func() { answer <- hasLabel(value) })
		return <-answer
	}
}

// hasLabel looks for the calling goroutine in a profile: there is no other way to read a goroutine's labels.
func hasLabel(value string) bool {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return false
	}
	label := fmt.Sprintf("%q:%q", labelKey, value)
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(block, label) && strings.Contains(block, ".hasLabel") {
			return true
		}
	}
	return false
}

func labelsAreRestored[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 5)
	l := x.newLoop(source)
	kept := l.worker.mark()
	check := func(after string) {
		if !kept() {
			x.stop("after %s the goroutine had lost its profiler labels", after)
		}
	}
	l.open()
	check("Open")
	l.add(split)
	check("AddSplits")
	l.takeAll()
	check("Poll")
	l.snapshot(1)
	check("Snapshot")
	_, err, _ := l.worker.call("Close", l.reader.Close)
	x.must("Close", err)
	check("Close")
	l.closed = true
	l.worker.end()

	c := x.coordinates(source, 1, nil)
	kept = c.worker.mark()
	c.start()
	check("Start of the enumerator")
	c.registerAll(1)
	c.all(1)
	check("AddReader and a discovery")
	c.checkpoint()
	check("Snapshot of the enumerator")
}

// readerStaysOnItsLoop gives background goroutines every chance to emit by themselves. What they do is noted by the collector, as in every case.
func readerStaysOnItsLoop[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	for range 10 {
		x.append(0, 20)
		l.backlog()
		if _, err := l.poll(); err != nil {
			x.stop("Poll: %v", err)
		}
		l.backlog()
	}
	_, _ = l.drive(x.inTime(), func() bool { return len(l.out.texts) >= x.total() }) // what arrives is another case's matter
}

// enumeratorStaysOnItsLoop lets discoveries come back early, late, and after the end.
func enumeratorStaysOnItsLoop[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	source := x.h.Source(x.b)
	for _, hangs := range []bool{false, true} {
		c := x.coordinates(source, 1, nil)
		if hangs {
			x.b.Stall()
		}
		c.start()
		c.registerAll(1)
		pass(x.h.Discovery)
		c.close()
		x.b.Resume()
		pass(x.h.Discovery) // a late answer
	}
}
