package reader

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

// Limits of one loop.
type Limits struct {
	Turn   sdk.TurnLimits
	Hard   time.Duration // a turn longer than this is woken up
	Cancel time.Duration // a connector call longer than this fails the task
}

// Config of one attempt.
type Config struct {
	Reader      sdk.ReaderID
	Attempt     protocol.Attempt
	Parallelism int
	Source      connector.Source
	Limits      Limits
	Mailbox     mailbox.Limits
	Budget      *mailbox.Budget
	Now         func() time.Time
	Watchdog    *watchdog.Watchdog
	Reports     Reports
	Coordinator Coordinator
	Stats       *telemetry.Reader
	Logger      *slog.Logger
	Metrics     sdk.Metrics
	Seams       *seam.Seams // nil outside of tests

	// Restored state of the reader, from the last completed checkpoint.
	Splits     []protocol.Split
	Finished   []protocol.Split
	Lineage    []protocol.Attempt // with this attempt last
	Generation uint64
}

// Loop drives one attempt. The goroutine of Run owns it; methods say when others may call them.
type Loop struct {
	cfg     Config
	core    *core
	mailbox *mailbox.Mailbox
	router  *exchange.Router
	reader  connector.Reader
	turn    *sdk.Turn
	out     output

	doorbell  chan struct{}
	notified  atomic.Bool
	terminal  atomic.Bool
	wanting   atomic.Bool    // the connector asked for a split and has not been answered
	fenced    atomic.Bool    // nothing of this attempt counts any more
	failed    atomic.Bool    // the failure was reported
	preempted atomic.Bool    // ends the running turn at the next element
	call      watchdog.Clock // what the watchdog sees
	waker     atomic.Pointer[connector.Reader]
	cancel    context.CancelCauseFunc
	done      chan struct{}
}

// New prepares an attempt; Run starts it. Attach sets the output before Run.
func New(cfg Config) *Loop {
	l := &Loop{
		cfg:      cfg,
		core:     newCore(cfg.Lineage, cfg.Source.Capability().Digest(), cfg.Splits, cfg.Finished, cfg.Generation),
		doorbell: make(chan struct{}, 1), // one slot: rings coalesce
		done:     make(chan struct{}),
	}
	l.mailbox = mailbox.New(cfg.Attempt, cfg.Mailbox, cfg.Budget, cfg.Now, l.Ring)
	if cfg.Seams != nil {
		l.mailbox.Watch(func(e *protocol.Envelope) error {
			return l.reach(seam.At{Point: seam.CapacityReserved, Epoch: e.Epoch, Kind: e.Kind, Sequence: e.Sequence})
		})
	}
	l.turn = sdk.NewTurn(cfg.Limits.Turn, cfg.Now, &l.preempted)
	l.out = output{fenced: &l.fenced, refused: &cfg.Stats.FencedEmits, turn: l.turn}
	return l
}

// Attach sets where output goes. Call it once, before Run.
func (l *Loop) Attach(router *exchange.Router) { l.router = router }

// Mailbox is where commands are offered. Any goroutine.
func (l *Loop) Mailbox() *mailbox.Mailbox { return l.mailbox }

// Attempt is the attempt's number. Any goroutine.
func (l *Loop) Attempt() protocol.Attempt { return l.cfg.Attempt }

// Ring wakes the loop. Any goroutine; never blocks.
func (l *Loop) Ring() {
	select {
	case l.doorbell <- struct{}{}:
	default:
	}
}

// Terminal ends the loop: it preempts everything that is queued, and wakes a running turn. Any goroutine, idempotent.
func (l *Loop) Terminal() {
	l.terminal.Store(true)
	l.preempted.Store(true)
	if c := l.cancel; c != nil {
		c(sdk.ErrClosed)
	}
	l.wakeup()
	l.Ring()
}

func (l *Loop) wakeup() {
	if r := l.waker.Load(); r != nil {
		l.cfg.Stats.Wakeups.Inc()
		(*r).Wakeup()
	}
}

// Fence makes everything this attempt does from now on change nothing. Any goroutine, idempotent.
func (l *Loop) Fence() {
	l.fenced.Store(true)
	l.preempted.Store(true)
	l.mailbox.Close()
	l.router.Close()
}

// Done is closed when the loop has left and the reader is closed. It never is when the connector hangs.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Start runs the loop on a goroutine of its own. It, Started and Terminal are called from one goroutine, the job's.
func (l *Loop) Start(ctx context.Context) {
	ctx, l.cancel = context.WithCancelCause(ctx)
	go l.run(ctx)
}

// Started reports that Start was called: only then Done will ever be closed.
func (l *Loop) Started() bool { return l.cancel != nil }

func (l *Loop) run(ctx context.Context) {
	defer close(l.done)
	defer l.cancel(sdk.ErrClosed)
	l.cfg.Watchdog.Add(watched{l})
	defer l.cfg.Watchdog.Remove(watched{l})
	err := l.open(ctx)
	if err == nil && !l.terminal.Load() {
		l.step(lifecycle.Started)
		l.reportOpened()
		err = l.work()
	}
	l.mailbox.Close()
	if err != nil && !l.terminal.Load() { // what a connector returns because it was cancelled is no failure
		l.fail(err)
	}
	l.close()
}

func (l *Loop) open(ctx context.Context) error {
	l.step(lifecycle.Restore)
	l.cfg.Stats.Splits.Set(int64(len(l.core.owned)))
	l.call.Begin(watchdog.Control, l.cfg.Now())
	defer l.call.End()
	r, err := l.cfg.Source.NewReader(&readerContext{l})
	if err != nil {
		return err
	}
	l.reader = r
	l.waker.Store(&r)
	if l.terminal.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Limits.Cancel)
	defer cancel()
	if err := r.Open(ctx); err != nil {
		return err
	}
	if len(l.cfg.Splits) == 0 {
		return nil
	}
	return r.AddSplits(l.cfg.Splits)
}

// reach passes a point at which a test may end the attempt.
func (l *Loop) reach(at seam.At) error {
	at.Reader, at.Attempt = l.cfg.Reader, l.cfg.Attempt
	return l.cfg.Seams.At(at)
}

func (l *Loop) reportOpened() {
	if !l.fenced.Load() {
		l.cfg.Reports.Opened(l.cfg.Reader, l.cfg.Attempt)
	}
}

// work is the loop itself.
func (l *Loop) work() error {
	for {
		if err := l.reach(seam.At{Point: seam.Turn}); err != nil {
			return err
		}
		in := inputs{terminal: l.terminal.Load(), controls: !l.mailbox.Empty(), credit: l.router.Credit()}
		if l.notified.Load() {
			// Cleared before the poll: a ring during the poll is seen by the next step.
			in.notified = l.notified.Swap(false)
		}
		l.noteBlocked(in.credit)
		var err error
		switch act := l.core.next(in); act {
		case actTerminal:
			return nil
		case actControl:
			err = l.control()
		case actPoll:
			err = l.poll()
		case actPark:
			l.router.Flush()
			<-l.doorbell
		}
		if err != nil {
			return err
		}
	}
}

// noteBlocked measures how long missing credit keeps the loop from polling.
func (l *Loop) noteBlocked(credit bool) {
	blocked := &l.cfg.Stats.OutputBlocked
	switch starved := l.core.starved(credit); {
	case starved == blocked.Running():
	case starved:
		blocked.Start(l.cfg.Now())
	default:
		blocked.Stop(l.cfg.Now())
	}
}

// poll runs one turn. What it emitted and the state that covers it are complete before anything else runs.
func (l *Loop) poll() error {
	l.preempted.Store(l.terminal.Load())
	l.turn.Restart()
	start := l.turn.Deadline().Add(-l.cfg.Limits.Turn.Duration)
	l.out.batch = l.router.Get()
	l.call.Begin(watchdog.Poll, start)
	l.cfg.Stats.Turn.Set(start)
	status, err := l.guardedPoll()
	l.cfg.Stats.Turn.Clear()
	l.call.End()
	took := l.cfg.Now().Sub(start)
	batch := l.out.batch
	l.out.batch = nil
	if err != nil {
		l.router.Put(batch)
		return err
	}
	l.measureTurn(status, batch, took)
	if batch.Len() == 0 {
		l.router.Put(batch)
	} else if !l.router.Send(batch) {
		return nil // fenced
	}
	if err := l.collectFinished(); err != nil {
		return err
	}
	switch status {
	case sdk.MoreAvailable:
	case sdk.NothingAvailable:
		l.core.armed = false
	case sdk.EndOfInput:
		l.core.armed, l.core.ended = false, true
		l.reportEnded(true)
	default:
		return sdk.Fatalf("Poll returned the unknown status %d", status)
	}
	return nil
}

func (l *Loop) measureTurn(status sdk.PollStatus, batch *sdk.Batch, took time.Duration) {
	stats := l.cfg.Stats
	stats.Turned(status)
	stats.Poll.Observe(took)
	if n := batch.Len(); n > 0 {
		stats.Records.Add(uint64(n))
		stats.Bytes.Add(uint64(batch.Bytes()))
	}
	if took > l.cfg.Limits.Turn.Duration {
		stats.SoftViolations.Inc()
	}
}

func (l *Loop) guardedPoll() (status sdk.PollStatus, err error) {
	err = connector.Guard("Poll", func() (err error) {
		status, err = l.reader.Poll(l.turn, &l.out)
		return err
	})
	return status, err
}

func (l *Loop) collectFinished() error {
	for i, s := range l.out.finished {
		final, err := l.reader.Encode(s)
		if err != nil {
			return err
		}
		l.core.finish(final)
		l.cfg.Stats.FinishedSplits.Inc()
		l.out.finished[i] = nil
	}
	if len(l.out.finished) > 0 {
		l.cfg.Stats.Splits.Set(int64(len(l.core.owned)))
	}
	l.out.finished = l.out.finished[:0]
	return nil
}

func (l *Loop) reportEnded(ended bool) {
	if !l.fenced.Load() {
		l.cfg.Reports.Ended(l.cfg.Reader, l.cfg.Attempt, ended)
	}
}

// fail reports the first failure of the attempt. Loop or watchdog.
func (l *Loop) fail(err error) {
	if l.fenced.Load() || l.failed.Swap(true) {
		return
	}
	if p, ok := errors.AsType[*connector.PanicError](err); ok {
		l.cfg.Logger.Error("connector panicked", "where", p.Where, "stack", string(p.Stack))
	}
	l.cfg.Reports.Failed(l.cfg.Reader, l.cfg.Attempt, err)
}

func (l *Loop) close() {
	if l.reader == nil {
		return
	}
	l.call.Begin(watchdog.Close, l.cfg.Now())
	defer l.call.End()
	if err := l.reader.Close(); err != nil && !l.fenced.Load() {
		l.cfg.Logger.Warn("closing the reader failed", "error", err)
	}
}

// step advances the main machine. The loop makes only legal steps; the table says so in its tests.
func (l *Loop) step(e lifecycle.Event) {
	if _, err := l.core.main.Step(e); err != nil {
		panic(err)
	}
}
