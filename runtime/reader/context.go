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

func (c *readerContext) RequestSplit() {
	if !c.l.fenced.Load() {
		c.l.cfg.Coordinator.RequestSplit(c.l.cfg.Reader, c.l.cfg.Attempt)
	}
}

func (c *readerContext) SendEvent(event sdk.Event) bool {
	return !c.l.fenced.Load() && c.l.cfg.Coordinator.Event(c.l.cfg.Reader, c.l.cfg.Attempt, event)
}
