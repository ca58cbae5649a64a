package reader

import (
	"errors"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Held is one split in a [Registration].
type Held struct {
	// Split is the split as it was assigned; its data is empty when Durable.
	Split protocol.Split
	// Durable: a completed checkpoint contains this split in this reader's state.
	Durable bool
}

// Registration is a reader's answer to a coordinator epoch: everything the new coordinator has to reconcile.
type Registration struct {
	Watermark  protocol.Watermark
	Owned      []Held
	Finished   []Held
	Generation uint64
	Ended      bool
}

// Reports takes what an attempt has to say. Its methods are called on the loop, or on the watchdog for Failed; they must
// not block. Nothing is reported after the attempt was fenced.
type Reports interface {
	// Opened: the reader is open and has its restored splits.
	Opened(reader sdk.ReaderID, attempt protocol.Attempt)
	// Snapshot acknowledges a barrier.
	Snapshot(reader sdk.ReaderID, attempt protocol.Attempt, id sdk.CheckpointID, state protocol.ReaderState)
	// Ended says that the reader returned EndOfInput, or, when false, that it reads again after a late assignment.
	Ended(reader sdk.ReaderID, attempt protocol.Attempt, ended bool)
	// Failed says why the attempt ended; the loop has left or never will.
	Failed(reader sdk.ReaderID, attempt protocol.Attempt, err error)
}

// Coordinator takes what concerns the enumerator side. Its methods are called on the loop, or on any goroutine of the
// connector for RequestSplit and Event; they must not block.
type Coordinator interface {
	Registered(reader sdk.ReaderID, attempt protocol.Attempt, epoch protocol.Epoch, answer Registration)
	// Applied reports the watermark after commands were applied. Repeated reports may be coalesced to the newest.
	Applied(reader sdk.ReaderID, attempt protocol.Attempt, mark protocol.Watermark)
	RequestSplit(reader sdk.ReaderID, attempt protocol.Attempt)
	Event(reader sdk.ReaderID, attempt protocol.Attempt, event sdk.Event) bool
}

// ErrStuck marks an attempt whose connector did not return within the cancellation timeout. The task fails and its
// goroutine is abandoned.
var ErrStuck = errors.New("connector call did not return")
