package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// errQuiet says that nothing came any more.
var errQuiet = errors.New("no record came")

// quiet is errQuiet after a time.
func quiet(limit time.Duration) error {
	return fmt.Errorf("%w within %s (where the system may take longer than that, Harness.Delay says so)", errQuiet, limit)
}

// maxFruitless is how many polls in a row may bring nothing at one moment of virtual time.
const maxFruitless = 10_000

// turnLimits are those of an engine.
func turnLimits() sdk.TurnLimits {
	return sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: 5 * time.Millisecond}
}

// loop drives a reader as an engine does: one goroutine, one doorbell, no call that overlaps another.
type loop[S sdk.Split, B Backend] struct {
	x      *trial[S, B]
	reader sdk.Reader[S]
	worker *worker
	ctx    *lent
	out    *collector[S]
	limits sdk.TurnLimits
	clock  func() time.Time // of turns
	urgent *atomic.Bool     // ends turns
	waited time.Duration    // the longest poll
	armed  bool             // an engine would poll without a ring: after a control, or when there is more
	closed bool
}

// reads makes a reader with these splits.
func (x *trial[S, B]) reads(source sdk.Source[S], splits ...S) *loop[S, B] {
	l := x.newLoop(source)
	l.open()
	l.add(splits...)
	return l
}

// newLoop makes a reader that is not opened.
func (x *trial[S, B]) newLoop(source sdk.Source[S]) *loop[S, B] {
	l := &loop[S, B]{x: x, worker: newWorker(), limits: turnLimits(), clock: time.Now, urgent: new(atomic.Bool)}
	l.ctx = &lent{bell: make(chan struct{}, 1), metrics: newMeters(), events: source.Capability().SourceEvents}
	l.out = &collector[S]{
		worker: l.worker, refuse: -1,
		textOf: func(rec *sdk.Record) (string, bool) { return x.h.Text(x.b, rec) },
	}
	x.later(l.close)
	x.last = append(x.last, func() { x.report(&l.out.misuse) })
	l.do("NewReader", func() (err error) {
		l.reader, err = source.NewReader(l.ctx)
		return err
	})
	if l.reader == nil {
		x.stop("NewReader answered no reader and no error")
	}
	return l
}

// do makes one call that has to work.
func (l *loop[S, B]) do(what string, f func() error) time.Duration {
	took, err, _ := l.worker.call(what, f)
	switch {
	case err != nil && (what == "NewReader" || what == "Open"):
		l.x.stopBefore("%s: %v", what, err)
	case err != nil:
		l.x.stop("%s: %v", what, err)
	}
	l.armed = true
	return took
}

func (l *loop[S, B]) open() {
	l.do("Open", func() error { return l.reader.Open(context.Background()) })
}

func (l *loop[S, B]) add(splits ...S) {
	if len(splits) > 0 {
		l.do("AddSplits", func() error { return l.reader.AddSplits(splits) })
	}
}

func (l *loop[S, B]) noMore() {
	h, ok := l.reader.(sdk.NoMoreSplitsHandler)
	if !ok {
		l.x.stop("the reader has no NoMoreSplits, so a bounded job with it never ends")
	}
	l.do("NoMoreSplits", h.NoMoreSplits)
}

func (l *loop[S, B]) snapshot(id sdk.CheckpointID) (splits []S) {
	l.do("Snapshot", func() (err error) {
		splits, err = l.reader.Snapshot(id)
		return err
	})
	return splits
}

// poll does one turn.
func (l *loop[S, B]) poll() (sdk.PollStatus, error) {
	status := sdk.NothingAvailable
	took, err, ok := l.worker.call("Poll", func() (err error) {
		l.out.turn = sdk.NewTurn(l.limits, l.clock, l.urgent)
		l.out.sizes, l.out.inTurn = 0, true
		defer func() { l.out.inTurn = false }()
		status, err = l.reader.Poll(l.out.turn, l.out)
		return err
	})
	l.waited = max(l.waited, took)
	l.armed = status == sdk.MoreAvailable
	if !ok {
		l.x.stop("%v", err)
	}
	return status, err
}

// drive polls when an engine would, and never otherwise, until enough says so, the input ends, a poll fails, or limit has passed. The error is errQuiet
// in the last case.
func (l *loop[S, B]) drive(limit time.Duration, enough func() bool) (sdk.PollStatus, error) {
	deadline := time.Now().Add(limit)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	fruitless, when, status := 0, time.Now(), sdk.NothingAvailable
	for !enough() {
		if !l.armed {
			select {
			case <-l.ctx.bell:
			case <-timer.C:
				return status, quiet(limit)
			}
		}
		had := len(l.out.records)
		var err error
		status, err = l.poll()
		if err != nil || status == sdk.EndOfInput {
			return status, err
		}
		if len(l.out.records) > had || time.Now().After(when) {
			fruitless, when = 0, time.Now()
		} else if fruitless++; fruitless == maxFruitless {
			l.x.stop("%d polls in a row answered %s or rang the doorbell, and brought nothing", fruitless, status)
		}
		if !time.Now().Before(deadline) && !enough() {
			return status, quiet(limit)
		}
	}
	return status, nil
}

// take drives until n more records have come, which has to work, and answers what they hold.
func (l *loop[S, B]) take(n int) []string {
	from := len(l.out.texts)
	_, err := l.drive(l.x.inTime(), func() bool { return len(l.out.texts) >= from+n })
	if got := len(l.out.texts) - from; err != nil {
		l.x.stop("%d of %d records came, then: %v", got, n, err)
	} else if got < n {
		l.x.stop("%d of %d records came, then the end of input", got, n)
	}
	return l.out.texts[from:]
}

// takeAll drives until everything that was appended has come.
func (l *loop[S, B]) takeAll() {
	if missing := l.x.total() - len(l.out.texts); missing > 0 {
		l.take(missing)
	}
}

// rest drives for a while and answers what came.
func (l *loop[S, B]) rest(limit time.Duration) []string {
	from := len(l.out.texts)
	if _, err := l.drive(limit, func() bool { return false }); err != nil && !errors.Is(err, errQuiet) {
		l.x.stop("Poll: %v", err)
	}
	return l.out.texts[from:]
}

// backlog waits until a reader has fetched something that it has not emitted, without polling.
func (l *loop[S, B]) backlog() { l.idle(l.x.h.Delay) }

// idle lets time pass without a poll. On the wall it takes what there is of fetching to wait for: a ring, or as long as a system needs to
// answer that has nothing.
func (l *loop[S, B]) idle(d time.Duration) {
	if !l.x.h.Wall {
		pass(d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.ctx.bell:
		l.armed = true // as an engine would take it
	case <-timer.C:
	}
}

// close closes the reader, once; errors are the business of the cases about closing.
func (l *loop[S, B]) close() {
	if l.closed {
		return
	}
	l.closed = true
	if l.reader != nil {
		_, _, _ = l.worker.call("Close", l.reader.Close)
	}
	l.worker.end()
}

// lent is the engine as a reader sees it.
type lent struct {
	bell    chan struct{}
	rings   atomic.Int64
	metrics *meters
	events  bool
	sent    atomic.Int64 // events that were sent without being declared
}

func (l *lent) Reader() sdk.ReaderID { return 0 }
func (l *lent) Parallelism() int     { return 1 }
func (l *lent) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }
func (l *lent) Metrics() sdk.Metrics { return l.metrics }
func (l *lent) RequestSplit()        {}

// SendEvent loses the event, as any failover may.
func (l *lent) SendEvent(sdk.Event) bool {
	if !l.events {
		l.sent.Add(1)
	}
	return false
}

func (l *lent) NotifyAvailable() {
	l.rings.Add(1)
	select {
	case l.bell <- struct{}{}:
	default:
	}
}
