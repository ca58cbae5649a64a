package conformance

import (
	"strings"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func closeScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"close/at_any_time":                      closeAtAnyTime[S, B],
		"close/while_a_fetch_is_stuck":           closeWhileAFetchIsStuck[S, B],
		"close/nothing_left_behind":              nothingLeftBehind[S, B],
		"close/enumerator_leaves_nothing_behind": enumeratorLeavesNothingBehind[S, B],
	}
}

// soon is how long a close may take: what it waits for is a fetch whose context has been cancelled.
const soon = time.Second

// closes closes the reader and says what is wrong with how it went.
func (l *loop[S, B]) closes(when string) {
	if l.closed {
		return
	}
	l.closed = true
	took, err, _ := l.worker.call("Close", l.reader.Close)
	l.worker.end()
	if err != nil {
		l.x.fail("closed %s: %v", when, err)
	}
	if took > l.x.bearable(soon) {
		l.x.fail("closed %s, the reader took %s", when, took)
	}
}

func closeAtAnyTime[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.newLoop(source).closes("before it was opened")

	l := x.newLoop(source)
	l.open()
	l.closes("after it was opened")

	l = x.reads(source, split)
	l.closes("right after a split was added")

	l = x.reads(source, split)
	l.rest(time.Second)
	l.closes("while it waited for data")

	x.append(0, 200)
	for _, records := range []int{1, 13, 200} {
		l = x.reads(source, split)
		l.limits.Records = 1
		l.take(records)
		l.closes("in the middle of reading")
	}
	l = x.reads(source, split)
	l.take(1)
	if _, err, _ := l.worker.call("Close", l.reader.Close); err != nil {
		x.fail("closed in the middle of reading: %v", err)
	}
	if _, err, _ := l.worker.call("Close", l.reader.Close); err != nil {
		x.fail("closed a second time: %v", err)
	}
	l.closed = true
	l.worker.end()
}

func closeWhileAFetchIsStuck[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	// A call may give up by itself after a while, so there are several moments.
	for _, stuck := range []time.Duration{time.Second, 12 * time.Second, time.Minute} {
		x.append(0, 20)
		l := x.reads(source, split)
		l.takeAll()
		x.b.Stall()
		x.append(0, 5)
		l.rest(stuck)
		l.closes("while the system hung")

		l = x.reads(source, split)
		l.rest(stuck)
		l.closes("while the system had never answered it")
		x.b.Resume()
	}
}

// alone fails when a goroutine is left, after the backend has gone.
func (x *trial[S, B]) alone(patience time.Duration) {
	if counter, ok := any(x.b).(Counter); ok {
		pass(patience)
		if n := counter.Open(); n > 0 {
			x.fail("%d connections to the system are open after everything was closed", n)
		}
	}
	x.end()
	pass(patience)
	synctest.Wait()
	if left := strays(); len(left) > 0 {
		x.fail("%d goroutines are left; the first:\n%s", len(left), firstLines(left[0], 12))
	}
}

// firstLines is the beginning of a stack.
func firstLines(stack string, n int) string {
	lines := strings.SplitN(stack, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

func nothingLeftBehind[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.newLoop(source).closes("before it was opened")
	x.append(0, 100)
	l := x.reads(source, split)
	l.take(10)
	l.closes("in the middle of reading")
	l = x.reads(source, split)
	l.take(100)
	l.rest(time.Minute)
	l.closes("at rest")
	if failer, ok := any(x.b).(Failer); ok {
		l = x.reads(source, split)
		failer.Fail(3)
		_, _ = l.drive(time.Minute, func() bool { return false })
		l.closes("after a failure")
		failer.Fail(0)
	}
	if dropper, ok := any(x.b).(Dropper); ok {
		l = x.reads(source, split)
		l.take(10)
		dropper.Drop()
		_, _ = l.drive(time.Second, func() bool { return false })
		l.closes("after its connections were dropped")
	}
	x.alone(soon)
}

func enumeratorLeavesNothingBehind[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	x.coordinates(source, 1, nil).close()

	c := x.coordinates(source, 1, nil)
	c.start()
	c.register(sdk.ReaderInfo{})
	c.all(2)
	c.close()

	x.b.Stall()
	c = x.coordinates(source, 1, nil)
	c.start()
	pass(time.Second)
	c.close()
	synctest.Wait()
	x.alone(time.Minute)
}
