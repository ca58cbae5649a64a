package sdk

import (
	"sync/atomic"
	"time"
)

// PollStatus is what a turn found.
type PollStatus uint8

const (
	// NothingAvailable means that the engine waits for NotifyAvailable or the next control before it polls again.
	NothingAvailable PollStatus = iota
	// MoreAvailable means that the engine polls again when controls are served and there is credit.
	MoreAvailable
	// EndOfInput means that no record will ever follow. Returned again when polled again.
	EndOfInput
)

func (s PollStatus) String() string {
	switch s {
	case NothingAvailable:
		return "NothingAvailable"
	case MoreAvailable:
		return "MoreAvailable"
	case EndOfInput:
		return "EndOfInput"
	default:
		return "PollStatus(?)"
	}
}

// TurnLimits are the budgets of one turn.
type TurnLimits struct {
	Records  int           // elements
	Bytes    int64         // payload bytes
	Duration time.Duration // soft limit
}

// Turn is the budget of one call of Poll. It is owned by the reader loop and valid only during that call.
type Turn struct {
	limits    TurnLimits
	records   int
	bytes     int64
	now       func() time.Time
	deadline  time.Time
	preempted *atomic.Bool
	calls     int
	look      int // the call at which the clock is read next
}

// Reading the clock for each element would cost more than most elements do. It is read at the firstLook-th call of
// ShouldYield; a turn that has then used little of its time looks again only after eight times as many calls, another
// one every few calls.
const (
	firstLook = 8
	slowLook  = 2
)

// NewTurn returns a turn for engines and test harnesses. now gives the time; preempted, when not nil, ends the turn at
// the next element once it is true.
func NewTurn(limits TurnLimits, now func() time.Time, preempted *atomic.Bool) *Turn {
	t := &Turn{limits: limits, now: now, preempted: preempted}
	t.Restart()
	return t
}

// Restart fills the budgets again and starts the clock, so that one Turn serves many polls.
func (t *Turn) Restart() {
	t.records, t.bytes, t.calls, t.look = t.limits.Records, t.limits.Bytes, 0, firstLook
	t.deadline = t.now().Add(t.limits.Duration)
}

// Records is how many more elements fit, never negative.
func (t *Turn) Records() int { return max(t.records, 0) }

// Bytes is how many more payload bytes fit, never negative. The element that crosses the limit is still accepted, so an
// element larger than the whole budget passes alone.
func (t *Turn) Bytes() int64 { return max(t.bytes, 0) }

// Deadline is the soft end of the turn.
func (t *Turn) Deadline() time.Time { return t.deadline }

// Consume takes from the budgets. Outputs call it, readers do not.
func (t *Turn) Consume(elements int, bytes int64) {
	t.records -= elements
	t.bytes -= bytes
}

// ShouldYield reports that the turn is to end before the next element. It is cheap enough to ask for every element.
func (t *Turn) ShouldYield() bool {
	if t.records <= 0 || t.bytes <= 0 || (t.preempted != nil && t.preempted.Load()) {
		return true
	}
	t.calls++
	return t.calls >= t.look && t.late()
}

// late reads the clock and plans the next look.
func (t *Turn) late() bool {
	left := t.deadline.Sub(t.now())
	switch {
	case left <= 0:
		return true // and again at each further call
	case left > t.limits.Duration-t.limits.Duration/16:
		t.look = 8 * t.calls
	default:
		t.look = t.calls + slowLook
	}
	return false
}

// Output takes what a turn produces. It is valid only during the call of Poll it was given to, on that goroutine.
type Output interface {
	// Emit hands a record over; its slices must not change afterwards. It reports false when the engine takes nothing
	// more from this reader (the attempt was fenced): the reader returns at once and is discarded.
	Emit(rec Record) bool
	// EmitView hands over elements of v starting at from, as many as the turn's budgets allow, and answers how many were
	// accepted; ok is false as for Emit. The reader advances its position past exactly the accepted ones.
	EmitView(v View, from int) (accepted int, ok bool)
	// FinishSplit says that the split ended at the position in final, after all its records were emitted. The engine keeps
	// the evidence until a checkpoint that contains it completes, and then tells the enumerator.
	FinishSplit(final Split)
}
