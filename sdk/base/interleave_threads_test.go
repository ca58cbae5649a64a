package base

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Three threads meet in a reader: its loop, the goroutine of a fetcher, and whoever calls Wakeup or NotifyAvailable. The
// tests of these files run them one step at a time: a thread is held wherever the reader calls the connector or the engine,
// and goes on when it is told to. So an operation is not one step: others come between its parts.

// place is where a thread is held.
type place uint8

const (
	nowhere place = iota // it does nothing, or it waits inside the reader

	// The fetcher: it makes its split reader, is about to apply a change, fetches, has data that it has not offered, has
	// something to ring for and has not rung, has rung, closes its split reader.
	creating
	handling
	fetching
	fetched
	ringing
	rung
	shutting

	// The loop: it has emitted a record.
	emitting
)

func (p place) String() string {
	return [...]string{"inside", "creating", "handling", "fetching", "fetched", "ringing", "rung", "shutting", "emitting"}[p]
}

// verdict lets a thread go on. What it says is for a fetch only.
type verdict struct {
	data bool  // bring the next batch
	err  error // and this
}

// thread is held at places. Its fields belong to the thread while it runs and to the test while nothing does.
type thread struct {
	at   place
	last place // where it was held before
	pass chan verdict
}

// hold is called by the thread.
func (t *thread) hold(p place) verdict {
	t.at = p
	v := <-t.pass
	t.at, t.last = nowhere, p
	return v
}

// act is a step of one thread.
type act uint8

const (
	// The nine operations.
	doPut          act = iota // the running fetch returns its next batch
	doPoll                    // a turn of two records
	doAvailability            // the loop takes the ring that waits at its doorbell
	doNotify                  // somebody rings the doorbell without a reason
	doAdd                     // a split is added, and all that are known are added again
	doNoMore                  // no more splits
	doFail                    // the running fetch fails
	doWakeup
	doClose

	// What they are made of, and what else may happen in between.
	doStep    // the fetcher goes on from where it is held
	doResume  // the loop goes on from where it is held
	doObey    // the cancelled fetch returns empty
	doPutFail // the running fetch returns its next batch together with an error
	doGiveUp  // Close has waited for as long as it may

	numActs
)

// operations is how many acts are operations; the rest are parts of them.
const operations = doClose + 1

func (a act) String() string {
	return [...]string{
		"put", "poll", "availability", "notify", "add", "no-more", "fail", "wakeup", "close",
		"step", "resume", "obey", "put-and-fail", "give-up", "none",
	}[a]
}

var errBroken = errors.New("broken")

// batches of the two splits: where each ends. The last one of a split finishes it.
var batches = [...][]int64{{1, 4}, {1}}

// perChunk is how many elements a chunk has; the rest of a batch is in a chunk of its own.
const perChunk = 2

// names of the two splits, in the order in which they are added.
var names = [...]sdk.SplitID{"a", "b"}

func indexOf(id sdk.SplitID) int { return slices.Index(names[:], id) }

// end is the number of elements of a split.
func end(i int) int64 { return batches[i][len(batches[i])-1] }

// budget is how many records a turn may emit.
const budget = 2

// world is one reader with its threads, and what is known of it from outside.
type world struct {
	*lent
	r       *Reader[num, at, at]
	turn    *sdk.Turn
	fetcher thread
	looper  thread
	script  scripted

	ringsFor place // where the fetcher was held before it came to ring, which says what for; nowhere when it does not
	work     chan func()
	running  atomic.Uint32 // the act that the loop does; numActs when it does nothing
	before   key           // what the loop held when Close began
	began    time.Time
	known    known
	acts     []act

	broken struct { // any thread may find that a rule is broken
		sync.Mutex
		rule string
		acts int // after so many
	}
}

// newWorld is called in a bubble, and so are all methods.
func newWorld(t testing.TB) *world {
	w := &world{lent: newLent(), work: make(chan func()), began: time.Now()}
	w.running.Store(uint32(numActs))
	w.fetcher.pass, w.looper.pass = make(chan verdict), make(chan verdict)
	w.script.world = w
	r, err := NewReader(w, Config[num, at, at]{
		Fetcher: func() (SplitReader[num, at], error) {
			w.fetcher.hold(creating)
			w.known.created = true
			return &w.script, nil
		},
		Emit: emitNum, QueueFetches: 1, // so that a fetcher waits for room
	})
	if err != nil {
		t.Fatal(err)
	}
	w.r = r
	w.turn = sdk.NewTurn(sdk.TurnLimits{Records: budget, Bytes: 1 << 20, Duration: time.Hour}, time.Now, nil)
	go w.loop()
	return w
}

// loop is the reader loop.
func (w *world) loop() {
	for f := range w.work {
		w.guard(f)
		w.running.Store(uint32(numActs))
	}
}

// doing is what the loop does.
func (w *world) doing() act { return act(w.running.Load()) }

// guard reports a panic as a broken rule, so that the world can still be taken down.
func (w *world) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			w.violate("the reader panics: %v", p)
		}
	}()
	f()
}

// violate notes the first rule that was broken. Any thread.
func (w *world) violate(format string, args ...any) {
	w.broken.Lock()
	defer w.broken.Unlock()
	if w.broken.rule == "" {
		w.broken.rule, w.broken.acts = fmt.Sprintf(format, args...), len(w.acts)
	}
}

// enabled reports whether a can happen now.
func (w *world) enabled(a act) bool {
	idle := w.doing() == numActs
	switch a {
	case doPut, doFail, doPutFail:
		return w.fetcher.at == fetching
	case doObey:
		return w.fetcher.at == fetching && w.script.ctx.Err() != nil
	case doStep:
		return w.fetcher.at != nowhere && w.fetcher.at != fetching
	case doResume:
		return w.looper.at != nowhere
	case doPoll, doAdd, doNoMore, doClose:
		return idle
	case doAvailability:
		return idle && !w.known.closing && !w.known.reported && len(w.doorbell) > 0
	case doGiveUp:
		return w.doing() == doClose && w.fetcher.at != nowhere
	case doNotify, doWakeup:
		return true
	case numActs:
	}
	return false
}

// do lets a happen and looks at all rules.
func (w *world) do(a act) {
	w.act(a)
	w.check(a)
}

// act lets a happen, and waits until every thread is held or waits.
func (w *world) act(a act) {
	w.acts = append(w.acts, a)
	switch a {
	case doPut:
		w.fetcher.pass <- verdict{data: true, err: context.Cause(w.script.ctx)}
	case doPutFail:
		w.known.failing = true
		w.fetcher.pass <- verdict{data: true, err: errBroken}
	case doFail:
		w.known.failing = true
		w.fetcher.pass <- verdict{err: errBroken}
	case doObey:
		w.fetcher.pass <- verdict{err: context.Cause(w.script.ctx)}
	case doStep:
		w.fetcher.pass <- verdict{}
	case doResume:
		w.looper.pass <- verdict{}
	case doPoll:
		w.run(a, w.poll)
	case doAvailability:
		<-w.doorbell
		w.known.awake = true
	case doNotify:
		w.NotifyAvailable()
	case doAdd:
		w.run(a, w.add)
	case doNoMore:
		w.known.noMore = true
		w.run(a, w.noMore)
	case doWakeup:
		w.known.woken = true
		w.r.Wakeup()
	case doClose:
		w.known.closing = true
		w.before = w.looped(nil)
		w.run(a, w.close)
	case doGiveUp:
		time.Sleep(DefaultCloseTimeout) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		w.known.gaveUp = true
	case numActs:
	}
	synctest.Wait()
}

// run gives the loop something to do.
func (w *world) run(a act, f func()) {
	w.running.Store(uint32(a))
	w.work <- f
}

// settle lets every thread go on until it waits, the fetcher first.
func (w *world) settle() {
	for range maxSettle {
		a, ok := w.next()
		if !ok {
			return
		}
		w.do(a)
	}
	w.violate("the threads do not come to rest")
}

// maxSettle is more than the steps of any operation.
const maxSettle = 100

// carryOn is how an operation that has begun goes on, the fetcher's part of it first.
var carryOn = [...]act{doStep, doObey, doResume}

func (w *world) next() (act, bool) {
	for _, a := range carryOn {
		if w.enabled(a) {
			return a, true
		}
	}
	return 0, false
}

// finish closes the reader, from wherever it stands, and checks that nothing is left of it.
func (w *world) finish() {
	w.settle()
	if w.doing() == numActs && !w.known.closed {
		w.do(doClose)
		w.settle()
	}
	if w.doing() == numActs && w.fetcher.at == nowhere {
		w.checkRemains()
		close(w.work)
		for _, f := range [...]func(){w.poll, w.add, w.noMore, w.r.Wakeup, w.close} {
			w.guard(f)
		}
		return
	}
	// A rule is broken. The goroutines have to end all the same, or the bubble tells no more than that they do not.
	w.violate("closed, the loop does %s and is %s, the fetcher is %s", w.doing(), w.looper.at, w.fetcher.at)
	close(w.work)
	for range maxSettle {
		switch {
		case w.looper.at != nowhere:
			w.looper.pass <- verdict{}
		case w.fetcher.at != nowhere:
			w.fetcher.pass <- verdict{err: sdk.ErrClosed}
		}
		synctest.Wait()
	}
	if w.doing() != numActs || w.r.feeds != nil && !ended(w.r.feeds[0].done) {
		panic(fmt.Sprintf("%s\nafter %v", w.broken.rule, w.acts[:w.broken.acts]))
	}
}

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Reader loop, through Output.

// Emit implements [sdk.Output].
func (w *world) Emit(rec sdk.Record) bool {
	w.emits(rec)
	w.turn.Consume(1, 1)
	w.looper.hold(emitting)
	return true
}

// EmitView implements [sdk.Output]; the reader of these tests has none.
func (w *world) EmitView(sdk.View, int) (int, bool) { return 0, false }

// FinishSplit implements [sdk.Output].
func (w *world) FinishSplit(final sdk.Split) {
	w.finishes(final.(at))
}

// Metrics implements [sdk.ReaderContext]: a fetcher counts what it has fetched before it offers it, and is held there.
func (w *world) Metrics() sdk.Metrics { return holdingMetrics{sdk.DiscardMetrics, w} }

type holdingMetrics struct {
	sdk.Metrics
	w *world
}

func (m holdingMetrics) Counter(name, unit, help string) sdk.Counter {
	if name == "fetched_elements" {
		return holdingCounter{m.w}
	}
	return m.Metrics.Counter(name, unit, help)
}

type holdingCounter struct{ w *world }

func (c holdingCounter) Add(int64) { c.w.fetcher.hold(fetched) }

// ring is how a fetcher rings.
func (w *world) ring() {
	w.ringsFor = w.fetcher.last
	w.fetcher.hold(ringing)
	w.NotifyAvailable()
	if w.ringsFor == fetched { // what follows the other rings is nothing that anybody could come before
		w.fetcher.hold(rung)
	}
	w.ringsFor = nowhere
}
