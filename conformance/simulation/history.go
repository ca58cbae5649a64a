package simulation

import (
	"fmt"
	"runtime"
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
		stacks     string // of a simulation that hangs
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

// maxStacks bounds, in bytes, what is kept of the stacks of all goroutines of the process.
const maxStacks = 4 << 20

// capture keeps what the goroutines of this bubble do, for the report of one that hangs.
func (h *history) capture() {
	buf := make([]byte, maxStacks)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	_, mine, _ := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble")
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, stack := range all {
		first, _, _ := strings.Cut(stack, "\n")
		if strings.HasSuffix(first, "synctest bubble"+mine) {
			h.mu.stacks += stack + "\n\n"
		}
	}
}

func (h *history) stacks() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.stacks
}
