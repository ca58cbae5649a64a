package seam

import (
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Point is a moment between two effects.
type Point uint8

// The points. Turn is none of the eleven: it comes before each event of a coordinator and each step of a reader.
const (
	Turn                  Point = iota
	CommandCreated              // nothing knows of the command but the coordinator
	OperationSend               // about to be offered, again perhaps
	CapacityReserved            // in the mailbox, before the command is visible there
	AdmissionAcknowledged       // the mailbox has it, the coordinator does not know
	Applying                    // the connector has done its part, the engine does not know
	Applied                     // marked as applied
	ApplyAcknowledged           // the coordinator knows
	Snapshotted                 // the reader's state is taken
	StateRegistered             // with the engine's part, and not acknowledged
	TaskAcknowledged            // and the barrier is not forwarded
	CheckpointCompleted         // durable, and nobody knows
)

// Points lists the eleven.
var Points = []Point{
	CommandCreated, OperationSend, CapacityReserved, AdmissionAcknowledged, Applying, Applied, ApplyAcknowledged,
	Snapshotted, StateRegistered, TaskAcknowledged, CheckpointCompleted,
}

func (p Point) String() string {
	return [...]string{
		"turn", "command created", "operation send", "capacity reserved", "admission acknowledged", "applying", "applied",
		"apply acknowledged", "snapshotted", "state registered", "task acknowledged", "checkpoint completed",
	}[p]
}

// At says where a point was reached.
type At struct {
	Point Point
	// Coordinator: on the coordinator's goroutine, else on the reader's, or for CheckpointCompleted the job's.
	Coordinator bool
	Epoch       protocol.Epoch       // of the coordinator, or of the command
	Reader      sdk.ReaderID         // whom it is about
	Attempt     protocol.Attempt     // of that reader
	Kind        protocol.CommandKind // zero at Turn, like Sequence
	Sequence    protocol.Sequence
	Checkpoint  sdk.CheckpointID // from Snapshotted on
}

// Message is what a reader tells the coordinator.
type Message uint8

// Messages.
const (
	Registered Message = iota
	Watermark
	SplitRequest
	Event
)

// Seams are called on the engine's goroutines and must not block. Any of them may be nil; so may a *Seams.
type Seams struct {
	// Reach is told of each point. Its error ends the task on whose goroutine it is called, there and then; at CapacityReserved
	// the reservation is undone and the command refused, and at CheckpointCompleted it has no effect.
	Reach func(At) error
	// Offer stands before a mailbox: it calls deliver once, or not at all, later, or again.
	Offer func(reader sdk.ReaderID, e *protocol.Envelope, deliver func(*protocol.Envelope) protocol.Ack) protocol.Ack
	// Tell stands before the coordinator: it calls deliver, or does so later, in order. A Watermark may get lost.
	Tell func(reader sdk.ReaderID, m Message, deliver func())
}

// At reaches a point.
func (s *Seams) At(at At) error {
	if s == nil || s.Reach == nil {
		return nil
	}
	return s.Reach(at)
}
