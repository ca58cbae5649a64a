package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

// Config of one epoch.
type Config struct {
	Job         string
	Epoch       protocol.Epoch
	Parallelism int
	Source      connector.Source
	Restored    *Restored // nil for a new job
	Checkpoints bool      // the job takes checkpoints

	TrackerSplits int
	TrackerBytes  int64
	PayloadBytes  int
	RetryInitial  time.Duration
	RetryMax      time.Duration
	Cancel        time.Duration // an enumerator call longer than this ends the epoch

	Workers  *Workers
	Watchdog *watchdog.Watchdog
	Reports  Reports
	Now      func() time.Time
	Stats    *telemetry.Coordinator
	Logger   *slog.Logger
	Metrics  sdk.Metrics
	Seams    *seam.Seams // nil outside of tests
}

// Loop drives one epoch. Its exported methods put events into the inbox and may be called from any goroutine; everything
// else belongs to the goroutine of the loop.
type Loop struct {
	cfg        Config
	inbox      *inbox
	scheduler  *scheduler
	tracker    *Tracker
	enumerator connector.Enumerator
	targets    map[sdk.ReaderID]*target
	reconciled bool
	ended      map[sdk.SplitID]bool // what the restored checkpoint says to have ended
	generation uint64
	// owing: the enumerator may have splits for readers that were told that no more follow. It has none when it says so again.
	owing    bool
	commands uint64
	failure  error

	clock    watchdog.Clock
	fenced   atomic.Bool
	reported atomic.Bool     // the epoch's failure was told
	ctx      context.Context //nolint:containedctx // the run context of the loop, the parent of its calls
	cancel   context.CancelCauseFunc
	done     chan struct{}
}

// New prepares an epoch.
func New(cfg Config) *Loop {
	l := &Loop{
		cfg: cfg, inbox: newInbox(4*cfg.Parallelism+4*maxKeys, cfg.Now, &cfg.Stats.OldestEvent), tracker: NewTracker(cfg.TrackerSplits, cfg.TrackerBytes),
		targets: map[sdk.ReaderID]*target{}, ended: map[sdk.SplitID]bool{}, done: make(chan struct{}),
	}
	if cfg.Restored != nil {
		l.generation = cfg.Restored.Coordinator.Generation
		for _, s := range evidence(cfg.Restored.Readers) {
			l.ended[s.ID] = true
		}
	}
	l.scheduler = newScheduler(l)
	return l
}

// Start runs the loop on a goroutine of its own until Stop, Fence or a failure.
func (l *Loop) Start(ctx context.Context) {
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	go l.run()
}

// Epoch is the number of the epoch.
func (l *Loop) Epoch() protocol.Epoch { return l.cfg.Epoch }

// Fence makes everything that the epoch does from now on change nothing, and ends it as soon as it returns from the
// connector. Idempotent; before Start it keeps the enumerator from being made.
func (l *Loop) Fence() {
	l.fenced.Store(true)
	l.inbox.close()
	if l.cancel != nil {
		l.cancel(sdk.ErrClosed)
	}
}

// Done is closed when the loop has left and the enumerator is closed.
func (l *Loop) Done() <-chan struct{} { return l.done }

// over reports that nothing of this epoch counts any more. Loop only, or code that runs in its calls.
func (l *Loop) over() bool { return l.fenced.Load() || l.failure != nil }

// reach passes a point at which a test may end the epoch, and reports that the epoch goes on.
func (l *Loop) reach(at seam.At) bool {
	at.Coordinator, at.Epoch = true, l.cfg.Epoch
	if err := l.cfg.Seams.At(at); err != nil {
		l.fail(err)
	}
	return !l.over()
}

// fail ends the epoch after the running event.
func (l *Loop) fail(err error) {
	if l.failure == nil {
		l.failure = err
	}
}

func (l *Loop) run() {
	defer close(l.done)
	l.cfg.Watchdog.Add(watched{l})
	defer l.cfg.Watchdog.Remove(watched{l})
	if !l.fenced.Load() {
		l.fail(l.create())
	}
	for !l.over() {
		<-l.inbox.doorbell
		l.drain()
	}
	l.scheduler.close()
	l.inbox.close()
	l.cancel(sdk.ErrClosed)
	if l.failure != nil {
		l.report(l.failure)
	}
	if l.enumerator != nil {
		l.clock.Begin(watchdog.Close, l.cfg.Now())
		if err := l.enumerator.Close(); err != nil && !l.fenced.Load() {
			l.cfg.Logger.Warn("closing the enumerator failed", "error", err)
		}
		l.clock.End()
	}
}

// report tells the failure of the epoch, once: a Close that hangs after it is no second one. Loop or watchdog.
func (l *Loop) report(err error) {
	if l.fenced.Load() || l.reported.Swap(true) {
		return
	}
	if p, ok := errors.AsType[*connector.PanicError](err); ok {
		l.cfg.Logger.Error("enumerator panicked", "where", p.Where, "stack", string(p.Stack))
	}
	l.cfg.Reports.Failed(l.cfg.Epoch, err)
}

func (l *Loop) create() error {
	l.clock.Begin(watchdog.Control, l.cfg.Now())
	defer l.clock.End()
	var state *sdk.VersionedBytes
	if l.cfg.Restored != nil {
		state = &l.cfg.Restored.Coordinator.Enumerator
	}
	var err error
	l.enumerator, err = l.cfg.Source.NewEnumerator(&enumeratorContext{l.scheduler, l}, state)
	return err
}

// drain serves everything that waits. Each event runs under the watchdog's eye: it may call the enumerator.
func (l *Loop) drain() {
	events, reports, overflow := l.inbox.take()
	if overflow {
		l.fail(ErrOverflow)
	}
	for _, e := range events {
		if !l.reach(seam.At{Point: seam.Turn}) {
			return
		}
		start := l.cfg.Now()
		l.clock.Begin(watchdog.Control, start)
		if err := e.run(); err != nil {
			l.fail(fmt.Errorf("%s: %w", e.name, err))
		}
		l.clock.End()
		l.cfg.Stats.EventService.Observe(l.cfg.Now().Sub(start))
	}
	for id, s := range reports {
		if !l.reach(seam.At{Point: seam.Turn}) {
			return
		}
		l.clock.Begin(watchdog.Control, l.cfg.Now())
		l.readerReport(id, s)
		l.clock.End()
	}
	l.measure()
}

func (l *Loop) measure() {
	l.tracker.measure(l.cfg.Stats)
	held := 0
	for _, t := range l.targets {
		held += len(t.queue)
	}
	l.cfg.Stats.Held.Set(int64(held))
	l.cfg.Stats.QueueEvents.Set(int64(l.inbox.length()))
}

// tell calls the enumerator, unless the epoch is over.
func (l *Loop) tell(what string, f func() error) {
	if l.over() {
		return
	}
	if err := f(); err != nil {
		l.fail(fmt.Errorf("enumerator: %s: %w", what, err))
	}
}

// timer puts an event into the inbox after a delay, which is short: one that outlives the epoch finds a closed inbox. The
// loop's own timers need no key: they check what they find.
func (l *Loop) timer(delay time.Duration, name string, run func() error) {
	time.AfterFunc(delay, func() { l.inbox.put(name, run) })
}

// watched is the loop as the watchdog sees it.
type watched struct{ l *Loop }

func (w watched) Clock() *watchdog.Clock               { return &w.l.clock }
func (w watched) Limits() (hard, cancel time.Duration) { return 0, w.l.cfg.Cancel }
func (w watched) Wake(time.Duration)                   {}

// Abandon ends the epoch while its goroutine is still inside the connector. It reports the failure itself, because the loop
// cannot.
func (w watched) Abandon(_ watchdog.Call, took time.Duration) {
	w.l.report(fmt.Errorf("%w: it runs for %s, the limit is %s", ErrStuck, took.Round(time.Millisecond), w.l.cfg.Cancel))
	w.l.Fence()
}

var _ reader.Coordinator = (*Port)(nil)
