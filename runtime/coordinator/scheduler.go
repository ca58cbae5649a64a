package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/sdk"
)

// maxKeys bounds the keys in use at one moment.
const maxKeys = 1024

// defaultCallTimeout is what [sdk.CallOptions] promises.
const defaultCallTimeout = time.Minute

// errCallTimeout is the cause when a call's time is over.
var errCallTimeout = errors.New("the call took too long")

// scheduler keeps the calls and timers of one epoch. The loop owns it; workers and timers only put events into the inbox.
type scheduler struct {
	l      *Loop
	number uint64 // of the newest call or timer: stale ones are told by it
	calls  map[string]*call
	timers map[string]*timer
}

type call struct {
	number uint64
	cancel context.CancelCauseFunc
	next   *request // the newest overlapping one, coalesced
	done   func(any, error)
	fail   sdk.OnFailure
}

type request struct {
	work    func(context.Context) (any, error)
	done    func(any, error)
	options sdk.CallOptions
}

type timer struct {
	number uint64
	timer  *time.Timer
}

func newScheduler(l *Loop) *scheduler {
	return &scheduler{l: l, calls: map[string]*call{}, timers: map[string]*timer{}}
}

func (s *scheduler) Call(key string, work func(context.Context) (any, error), done func(any, error), options sdk.CallOptions) {
	if s.l.over() {
		return
	}
	r := &request{work, done, options}
	if running := s.calls[key]; running != nil {
		s.l.cfg.Stats.Overlaps.Inc()
		if options.Overlap == sdk.SkipIfRunning {
			s.l.cfg.Stats.Skipped.Inc()
			return
		}
		if running.next != nil {
			s.l.cfg.Stats.Coalesced.Inc()
		}
		running.next = r
		return
	}
	if len(s.calls) >= maxKeys {
		s.l.fail(sdk.Fatalf("call %q: more than %d keys are in use", key, maxKeys))
		return
	}
	s.start(key, r)
}

func (s *scheduler) start(key string, r *request) {
	s.number++
	ctx, cancel := context.WithCancelCause(s.l.ctx)
	c := &call{number: s.number, cancel: cancel, done: r.done, fail: r.options.OnFailure}
	s.calls[key] = c
	timeout := cmp.Or(r.options.Timeout, defaultCallTimeout)
	launch := func() { s.launch(ctx, key, c.number, r.work, timeout) }
	if r.options.Delay <= 0 {
		launch()
		return
	}
	t := time.AfterFunc(r.options.Delay, func() { s.l.inbox.put("delayed call", func() error { launch(); return nil }) })
	context.AfterFunc(ctx, func() { t.Stop() })
}

// launch hands work to the pool. The result is told at the timeout at the latest: work that ignores its context keeps its
// place in the pool, but the loop does not wait for it.
func (s *scheduler) launch(ctx context.Context, key string, number uint64, work func(context.Context) (any, error), timeout time.Duration) {
	l, stats, queued := s.l, s.l.cfg.Stats, s.l.cfg.Now()
	stats.AsyncQueued.Add(1)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errCallTimeout)
	tell := func(value any, err error) {
		l.inbox.put("call result", func() error { return s.finished(key, number, value, err) })
	}
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errCallTimeout) {
			stats.AsyncTimeouts.Inc()
			tell(nil, fmt.Errorf("%s: %w: its Timeout (CallOptions, EnumeratorConfig) is %s", key, errCallTimeout, timeout))
		}
	})
	l.cfg.Workers.submit(ctx, func() {
		started := l.cfg.Now()
		stats.AsyncQueued.Add(-1)
		stats.AsyncQueue.Observe(started.Sub(queued))
		stats.AsyncRunning.Add(1)
		var value any
		err := connector.Guard(key, func() (err error) { value, err = work(ctx); return err })
		stats.AsyncRunning.Add(-1)
		stats.AsyncExec.Observe(l.cfg.Now().Sub(started))
		if stop() {
			tell(value, err)
		}
		cancel()
	}, func() {
		stats.AsyncQueued.Add(-1)
		cancel()
	})
}

// finished runs on the loop.
func (s *scheduler) finished(key string, number uint64, value any, err error) error {
	c := s.calls[key]
	if c == nil || c.number != number {
		s.l.cfg.Stats.StaleResults.Inc()
		return nil
	}
	delete(s.calls, key)
	c.cancel(nil)
	if c.next != nil {
		s.start(key, c.next)
	}
	if err != nil {
		s.l.cfg.Stats.AsyncFailures.Inc()
		if c.fail == sdk.FailCoordinator {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return connector.Guard(key, func() error { c.done(value, err); return nil })
}

func (s *scheduler) Schedule(key string, delay time.Duration, task func()) {
	if s.l.over() {
		return
	}
	if old := s.timers[key]; old != nil {
		old.timer.Stop()
	} else if len(s.timers) >= maxKeys {
		s.l.fail(sdk.Fatalf("schedule %q: more than %d keys are in use", key, maxKeys))
		return
	}
	s.number++
	number := s.number
	s.timers[key] = &timer{number: number, timer: time.AfterFunc(delay, func() {
		s.l.inbox.put("timer", func() error {
			if t := s.timers[key]; t == nil || t.number != number {
				s.l.cfg.Stats.StaleResults.Inc()
				return nil
			}
			delete(s.timers, key)
			return connector.Guard(key, func() error { task(); return nil })
		})
	})}
}

func (s *scheduler) Cancel(key string) {
	if c := s.calls[key]; c != nil {
		c.cancel(sdk.ErrClosed)
		delete(s.calls, key)
	}
	if t := s.timers[key]; t != nil {
		t.timer.Stop()
		delete(s.timers, key)
	}
}

// close cancels everything; results that still come find a closed inbox.
func (s *scheduler) close() {
	for _, c := range s.calls {
		c.cancel(sdk.ErrClosed)
	}
	for _, t := range s.timers {
		t.timer.Stop()
	}
	clear(s.calls)
	clear(s.timers)
}
