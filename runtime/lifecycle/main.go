package lifecycle

import (
	"errors"
	"fmt"
)

// State of the main machine.
type State uint8

// States of the main machine.
const (
	Created State = iota
	Restoring
	Running
	Draining
	Cancelling
	Failed
	Closed
	numStates
)

var stateNames = [numStates]string{"created", "restoring", "running", "draining", "cancelling", "failed", "closed"}

func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Event of the main machine.
type Event uint8

// Events of the main machine.
const (
	Restore  Event = iota // start, with or without saved state
	Started               // everything is open
	Drain                 // graceful close or end of input
	Cancel                // asked to end without a last checkpoint
	Fail                  // a failure that this life does not survive
	Finished              // everything is released
	numEvents
)

var eventNames = [numEvents]string{"restore", "started", "drain", "cancel", "fail", "finished"}

func (e Event) String() string {
	if e < numEvents {
		return eventNames[e]
	}
	return fmt.Sprintf("Event(%d)", uint8(e))
}

// ErrIllegal marks a transition that the table does not have: a programming error in the caller.
var ErrIllegal = errors.New("illegal transition")

// table lists every legal transition. Cancel and Fail repeat without effect where they cannot change anything any more:
// both race with the end of the task.
var table = map[State]map[Event]State{
	Created:    {Restore: Restoring, Cancel: Cancelling, Fail: Failed},
	Restoring:  {Started: Running, Drain: Draining, Cancel: Cancelling, Fail: Failed},
	Running:    {Drain: Draining, Cancel: Cancelling, Fail: Failed},
	Draining:   {Drain: Draining, Cancel: Cancelling, Fail: Failed, Finished: Closed},
	Cancelling: {Started: Cancelling, Drain: Cancelling, Cancel: Cancelling, Fail: Cancelling, Finished: Closed},
	Failed:     {Started: Failed, Drain: Failed, Cancel: Failed, Fail: Failed, Finished: Closed},
	Closed:     {Cancel: Closed, Fail: Closed},
}

// Machine is the main machine. It is owned by one goroutine.
type Machine struct{ state State }

// State is the current state.
func (m *Machine) State() State { return m.state }

// Step applies e. An illegal event changes nothing and returns an error that wraps [ErrIllegal].
func (m *Machine) Step(e Event) (State, error) {
	next, ok := table[m.state][e]
	if !ok {
		return m.state, fmt.Errorf("%w: %s while %s", ErrIllegal, e, m.state)
	}
	m.state = next
	return next, nil
}

// Ended reports that the machine takes no more work: it is cancelling, failed or closed.
func (s State) Ended() bool { return s == Cancelling || s == Failed || s == Closed }
