package coordinator

import (
	"sync/atomic"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/sdk"
)

// Port is how readers reach the coordinator, whichever epoch it is in. Any goroutine.
type Port struct{ current atomic.Pointer[Loop] }

// Set makes l the current epoch.
func (p *Port) Set(l *Loop) { p.current.Store(l) }

// Registered implements [reader.Coordinator]. An answer to another epoch is dropped: that epoch is over.
func (p *Port) Registered(id sdk.ReaderID, attempt protocol.Attempt, epoch protocol.Epoch, answer reader.Registration) {
	if l := p.current.Load(); l != nil && l.cfg.Epoch == epoch {
		l.inbox.put("registration", func() error { return l.registered(id, attempt, answer) })
	}
}

// Applied implements [reader.Coordinator].
func (p *Port) Applied(id sdk.ReaderID, attempt protocol.Attempt, mark protocol.Watermark) {
	if l := p.current.Load(); l != nil && l.cfg.Epoch == mark.Epoch {
		l.inbox.report(id, attempt, func(s *slot) bool { s.mark = &mark; return true })
	}
}

// RequestSplit implements [reader.Coordinator].
func (p *Port) RequestSplit(id sdk.ReaderID, attempt protocol.Attempt) {
	if l := p.current.Load(); l != nil {
		l.inbox.report(id, attempt, func(s *slot) bool { s.request = true; return true })
	}
}

// Event implements [reader.Coordinator].
func (p *Port) Event(id sdk.ReaderID, attempt protocol.Attempt, event sdk.Event) bool {
	l := p.current.Load()
	if l == nil {
		return false
	}
	ok := l.inbox.report(id, attempt, func(s *slot) bool {
		if len(s.events) >= maxReaderEvents {
			return false
		}
		s.events = append(s.events, event)
		return true
	})
	if !ok {
		l.cfg.Stats.EventsDropped.Inc()
	}
	return ok
}
