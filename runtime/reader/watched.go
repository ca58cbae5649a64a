package reader

import (
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/runtime/watchdog"
)

// watched is the loop as the watchdog sees it.
type watched struct{ l *Loop }

func (w watched) Clock() *watchdog.Clock { return &w.l.call }

func (w watched) Limits() (hard, cancel time.Duration) {
	return w.l.cfg.Limits.Hard, w.l.cfg.Limits.Cancel
}

func (w watched) Wake(took time.Duration) {
	l := w.l
	l.cfg.Stats.HardViolations.Inc()
	l.cfg.Logger.Warn("a poll turn exceeds the hard limit; waking the reader", "took", took, "limit", l.cfg.Limits.Hard)
	l.preempted.Store(true)
	l.wakeup()
}

// Abandon gives the attempt up while its goroutine is still inside the connector.
func (w watched) Abandon(call watchdog.Call, took time.Duration) {
	l := w.l
	l.fail(fmt.Errorf("%w: %s runs for %s, the limit is %s", ErrStuck, call, took.Round(time.Millisecond), l.cfg.Limits.Cancel))
	l.Fence()
	l.Terminal()
}
