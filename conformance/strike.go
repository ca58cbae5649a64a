package conformance

import (
	"errors"
	"fmt"
	"sync"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// errKilled is the death of a task that was struck.
var errKilled = errors.New("killed by the suite")

// strike kills a reader, the coordinator, or both, when a point between two effects of the engine has been passed n times: by an
// assignment, or by a reader's part of a checkpoint. Who is to die dies at the next point of its own.
type strike struct {
	point               seam.Point
	n                   int
	reader, coordinator bool

	mu struct {
		sync.Mutex
		passed   int
		struck   bool
		newest   protocol.Epoch
		attempts map[sdk.ReaderID]protocol.Attempt // the newest
		attempt  protocol.Attempt                  // that dies
		epoch    protocol.Epoch                    // that dies
	}
}

func newStrike(point seam.Point, n int, reader, coordinator bool) *strike {
	s := &strike{point: point, n: n, reader: reader, coordinator: coordinator}
	s.mu.attempts = map[sdk.ReaderID]protocol.Attempt{}
	return s
}

func (s *strike) seams() *seam.Seams { return &seam.Seams{Reach: s.reach} }

func (s *strike) String() string {
	who := "the reader"
	switch {
	case s.reader && s.coordinator:
		who = "reader and coordinator"
	case s.coordinator:
		who = "the coordinator"
	}
	return fmt.Sprintf("%s died at %q, passed for the %s time", who, s.point, [...]string{"", "1st", "2nd", "3rd", "4th"}[s.n])
}

func (s *strike) reach(at seam.At) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case at.Coordinator:
		s.mu.newest = max(s.mu.newest, at.Epoch)
	case at.Point == seam.Turn:
		s.mu.attempts[at.Reader] = max(s.mu.attempts[at.Reader], at.Attempt)
	}
	// Only the command at which it strikes is refused; another one has to wake a parked reader, or it would not notice that it is dead.
	struckNow := s.pass(at)
	switch {
	case !s.mu.struck:
		return nil
	case s.coordinator && at.Coordinator && at.Epoch == s.mu.epoch:
	case s.reader && !at.Coordinator && at.Attempt != 0 && at.Attempt == s.mu.attempt && (at.Point != seam.CapacityReserved || struckNow):
	default:
		return nil
	}
	return fmt.Errorf("%w at %q", errKilled, at.Point)
}

// pass counts, and reports whether it strikes. The caller holds the lock.
func (s *strike) pass(at seam.At) bool {
	if at.Point != s.point || at.Point < seam.Snapshotted && at.Kind != protocol.AddSplits || s.mu.struck {
		return false
	}
	if s.mu.passed++; s.mu.passed < s.n {
		return false
	}
	s.mu.struck = true
	s.mu.epoch = s.mu.newest
	if s.mu.attempt = at.Attempt; at.Attempt == 0 {
		s.mu.attempt = s.mu.attempts[at.Reader]
	}
	return true
}

// happened reports whether it struck.
func (s *strike) happened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.struck
}
