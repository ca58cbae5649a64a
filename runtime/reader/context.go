package reader

import (
	"log/slog"

	"github.com/penstock-dev/penstock/sdk"
)

// readerContext is what the connector sees of the loop. After the attempt was fenced it does nothing.
type readerContext struct{ l *Loop }

func (c *readerContext) Reader() sdk.ReaderID { return c.l.cfg.Reader }
func (c *readerContext) Parallelism() int     { return c.l.cfg.Parallelism }
func (c *readerContext) Logger() *slog.Logger { return c.l.cfg.Logger }
func (c *readerContext) Metrics() sdk.Metrics { return c.l.cfg.Metrics }

// NotifyAvailable sets the flag before it rings: the loop clears it before it polls, so whichever of the two comes first, a
// poll follows the ring.
func (c *readerContext) NotifyAvailable() {
	c.l.notified.Store(true)
	c.l.Ring()
}

// RequestSplit remembers the wish until splits come: one that reaches no coordinator, because none has registered this attempt
// yet or the one that took it failed, is told again at the next registration.
func (c *readerContext) RequestSplit() {
	c.l.wanting.Store(true)
	c.l.requestSplit()
}

func (l *Loop) requestSplit() {
	if !l.fenced.Load() {
		l.cfg.Coordinator.RequestSplit(l.cfg.Reader, l.cfg.Attempt)
	}
}

func (c *readerContext) SendEvent(event sdk.Event) bool {
	return !c.l.fenced.Load() && c.l.cfg.Coordinator.Event(c.l.cfg.Reader, c.l.cfg.Attempt, event)
}
