package simulation

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxEvents and maxViolations bound what is remembered of one simulation.
const (
	maxEvents     = 2000
	maxViolations = 20
)

// history is what happened, for whoever reads about a failing seed.
type history struct {
	start time.Time
	mu    struct {
		sync.Mutex
		events     []string
		dropped    int
		violations []string
	}
}

func newHistory() *history { return &history{start: time.Now()} }

func (h *history) note(format string, args ...any) {
	text := fmt.Sprintf("%12s  ", time.Since(h.start)) + fmt.Sprintf(format, args...)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.mu.events) == maxEvents {
		h.mu.events = append(h.mu.events[:0], h.mu.events[maxEvents/2:]...)
		h.mu.dropped += maxEvents / 2
	}
	h.mu.events = append(h.mu.events, text)
}

// violate notes that something is wrong.
func (h *history) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.note("VIOLATION: %s", text)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.mu.violations) < maxViolations {
		h.mu.violations = append(h.mu.violations, text)
	}
}

func (h *history) violations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.mu.violations...)
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	if h.mu.dropped > 0 {
		fmt.Fprintf(&b, "(%d older events)\n", h.mu.dropped)
	}
	for _, e := range h.mu.events {
		b.WriteString(e + "\n")
	}
	return b.String()
}
