package conformance

import (
	"fmt"
	"sync"
)

// misuse collects what no connector may do, whatever a case is about. It may come from any goroutine.
type misuse struct {
	mu   sync.Mutex
	seen []string
}

func (m *misuse) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) < maxFailures {
		m.seen = append(m.seen, fmt.Sprintf(format, args...))
	}
}

// report makes failures of it.
func (x *trial[S, B]) report(m *misuse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, what := range m.seen {
		x.fail("%s", what)
	}
	m.seen = nil
}
