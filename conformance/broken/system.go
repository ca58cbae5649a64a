package broken

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// latency is how long an answer takes.
const latency = time.Millisecond

var errFailed = errors.New("the system failed")

// System is a set of logs in memory. It implements all abilities of a backend of the suite.
type System struct {
	mu        sync.Mutex
	parts     [][]string
	changed   chan struct{} // closed and replaced by every change
	stalled   bool
	failing   int
	committed []int // for a source that trusts it
}

// NewSystem makes empty logs.
func NewSystem(parts int) *System {
	return &System{parts: make([][]string, parts), committed: make([]int, parts), changed: make(chan struct{})}
}

func (s *System) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Append implements conformance.Backend.
func (s *System) Append(part int, values ...string) {
	s.change(func() { s.parts[part] = append(s.parts[part], values...) })
}

// Stall implements conformance.Backend.
func (s *System) Stall() { s.change(func() { s.stalled = true }) }

// Resume implements conformance.Backend.
func (s *System) Resume() { s.change(func() { s.stalled = false }) }

// Fail implements conformance.Failer.
func (s *System) Fail(calls int) { s.change(func() { s.failing = calls }) }

// Grow implements conformance.Grower.
func (s *System) Grow(parts int) {
	s.change(func() {
		s.parts = append(s.parts, make([][]string, parts-len(s.parts))...)
		s.committed = append(s.committed, make([]int, parts-len(s.committed))...)
	})
}

// Close implements conformance.Backend.
func (s *System) Close() {}

// lengths answers how long each log is.
func (s *System) lengths() (all []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		all = append(all, len(p))
	}
	return all
}

// await waits until the system answers and ready says that it has something to answer.
func (s *System) await(ctx context.Context, ready func() bool) error {
	for {
		s.mu.Lock()
		if !s.stalled && s.failing > 0 {
			s.failing--
			s.mu.Unlock()
			return errFailed
		}
		if !s.stalled && ready() {
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// list answers the number of logs.
func (s *System) list(ctx context.Context) (n int, err error) {
	if err := wait(ctx, latency); err != nil {
		return 0, err
	}
	err = s.await(ctx, func() bool {
		n = len(s.parts)
		return true
	})
	return n, err
}

// read answers up to n values from a position on, at least one.
func (s *System) read(ctx context.Context, part, from, n int) (values []string, err error) {
	if err := wait(ctx, latency); err != nil {
		return nil, err
	}
	err = s.await(ctx, func() bool {
		log := s.parts[part]
		if from >= len(log) {
			return false
		}
		for _, v := range log[from:min(from+n, len(log))] {
			values = append(values, strings.Clone(v))
		}
		s.committed[part] = from + len(values)
		return true
	})
	return values, err
}

// progress answers where it was last read.
func (s *System) progress() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.committed)
}

func (s *System) hangs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
