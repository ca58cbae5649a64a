package simulation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// Strike ends tasks at one of the eleven points, as nothing else could: between two effects of the engine.
type Strike struct {
	Point seam.Point
	N     int // at the N-th time that the point is reached: by an assignment, or by a reader's part of a checkpoint
	// Reader and Coordinator say who dies: the reader that it is about, and the epoch.
	Reader, Coordinator bool
	// Then is what becomes of the checkpoint in progress, or else of the next one.
	Then Then
	// Grace is how long the process lives on after the strike; 0 until its end.
	Grace time.Duration
}

// Then is the fate of a checkpoint.
type Then uint8

// Fates of a checkpoint.
const (
	Completes Then = iota
	Aborts         // it times out, and later ones complete
	Hangs          // neither it nor any later one of this life ever ends
)

func (t Then) String() string { return [...]string{"completes", "aborts", "never ends"}[t] }

// StrikeReport is what came of a strike within its life.
type StrikeReport struct {
	Reader, Coordinator bool // died
	Held                int  // how many sink tasks held a checkpoint back
	Completed           int  // checkpoints that were prepared only afterwards, and completed
}

func (s *Strike) String() string {
	who := "the reader dies"
	switch {
	case s.Reader && s.Coordinator:
		who = "reader and coordinator die"
	case s.Coordinator:
		who = "the coordinator dies"
	}
	return fmt.Sprintf("%s at %q, time %d, and the checkpoint %s", who, s.Point, s.N, s.Then)
}

// striker carries out a strike, and counts how often each point is reached.
type striker struct {
	of     *life
	struck chan struct{}
	mu     struct {
		sync.Mutex
		reached  map[seam.Point]int
		done     bool
		attempt  protocol.Attempt // that died
		epoch    protocol.Epoch   // that died
		newest   protocol.Epoch
		attempts map[sdk.ReaderID]protocol.Attempt
		held     sdk.CheckpointID // the checkpoint that is to abort
		begun    sdk.CheckpointID // the newest that a task prepared before
		report   StrikeReport
		aborted  map[sdk.CheckpointID]chan struct{}
		rings    map[sdk.ReaderID]func() // wake the newest attempt
	}
}

func newStriker(of *life) *striker {
	s := &striker{of: of, struck: make(chan struct{})}
	s.mu.reached, s.mu.attempts = map[seam.Point]int{}, map[sdk.ReaderID]protocol.Attempt{}
	s.mu.aborted, s.mu.rings = map[sdk.CheckpointID]chan struct{}{}, map[sdk.ReaderID]func(){}
	return s
}

// reach implements the seam of the same name.
func (s *striker) reach(at seam.At) error {
	switch {
	case at.Point == seam.Turn && !at.Coordinator:
		s.of.order.begins(at)
	case at.Point == seam.Applying, at.Point == seam.Snapshotted:
		s.of.order.applied(at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Coordinator {
		s.mu.newest = at.Epoch
	} else if at.Point == seam.Turn {
		s.mu.attempts[at.Reader] = max(s.mu.attempts[at.Reader], at.Attempt)
	}
	s.hit(at)
	switch {
	case !s.mu.done:
		return nil
	case at.Coordinator && s.mu.epoch == at.Epoch:
		s.mu.report.Coordinator = true
	case !at.Coordinator && at.Attempt != 0 && s.mu.attempt == at.Attempt:
		s.mu.report.Reader = s.mu.report.Reader || at.Point != seam.CapacityReserved // where the reader does not hear of it
	default:
		return nil
	}
	return fmt.Errorf("%w: at %s", errInjected, at.Point)
}

// begins remembers how to wake a reader.
func (s *striker) begins(task sdk.ReaderID, ring func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.rings[task] = ring
}

// hit strikes when it is time. The caller holds the lock.
func (s *striker) hit(at seam.At) {
	if at.Point == seam.Turn || at.Point < seam.Snapshotted && at.Kind != protocol.AddSplits {
		return
	}
	s.mu.reached[at.Point]++
	strike := s.of.plan.Strike
	if s.mu.done || strike == nil || strike.Point != at.Point || strike.N != s.mu.reached[at.Point] {
		return
	}
	s.mu.done = true
	if strike.Reader {
		if s.mu.attempt = at.Attempt; at.Attempt == 0 {
			s.mu.attempt = s.mu.attempts[at.Reader]
		}
		if ring := s.mu.rings[at.Reader]; ring != nil {
			defer ring() // one that is parked would not notice
		}
	}
	if strike.Coordinator {
		s.mu.epoch = s.mu.newest
	}
	s.of.note("%s: reader %d, attempt %d, epoch %d", strike, at.Reader, s.mu.attempt, s.mu.epoch)
	close(s.struck)
}

// prepare holds a checkpoint back at its last part, as long as the strike says, or until the task ends.
func (s *striker) prepare(ctx context.Context, id sdk.CheckpointID) {
	s.mu.Lock()
	strike := s.of.plan.Strike
	if !s.mu.done {
		s.mu.begun = max(s.mu.begun, id)
	}
	if !s.mu.done || strike.Then == Completes || strike.Then == Aborts && s.mu.held != 0 && s.mu.held != id {
		s.mu.Unlock()
		return
	}
	s.mu.held = id
	s.mu.report.Held++
	over := s.over(id)
	s.mu.Unlock()
	s.of.note("checkpoint %d is held back", id)
	if strike.Then == Hangs {
		over = nil
	}
	select {
	case <-over:
	case <-ctx.Done():
	case <-s.of.chaos.calm:
	case <-s.of.chaos.dead:
	}
}

// over is closed when a checkpoint was given up. The caller holds the lock.
func (s *striker) over(id sdk.CheckpointID) chan struct{} {
	c := s.mu.aborted[id]
	if c == nil {
		c = make(chan struct{})
		s.mu.aborted[id] = c
	}
	return c
}

// gaveUp notes that a checkpoint was given up.
func (s *striker) gaveUp(id sdk.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.over(id)
	select {
	case <-c:
	default:
		close(c)
	}
}

// completed notes that a checkpoint completed.
func (s *striker) completed(id sdk.CheckpointID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.done && id > s.mu.begun {
		s.mu.report.Completed++
	}
}

// counts is how often each point was reached, and what came of the strike, if it was carried out.
func (s *striker) counts() (reached map[seam.Point]int, report StrikeReport, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	report = s.mu.report
	// With an exchange that joins all tasks, the death of the reader ends the epoch before it gets to its own.
	report.Coordinator = report.Coordinator || s.mu.epoch != 0 && s.mu.newest > s.mu.epoch
	return maps.Clone(s.mu.reached), report, s.mu.done
}
