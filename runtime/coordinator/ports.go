package coordinator

import (
	"errors"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Mailbox is where a reader attempt takes commands.
type Mailbox interface {
	Offer(e *protocol.Envelope) protocol.Ack
}

// Reports takes what an epoch has to say to the job. Its methods are called on the coordinator loop and must not block.
// Nothing is reported after the epoch was fenced.
type Reports interface {
	// Reconciled: every reader has registered, and assignments go out. Checkpoints may be taken from now on.
	Reconciled(epoch protocol.Epoch)
	// Snapshot is the coordinator's part of a cut.
	Snapshot(epoch protocol.Epoch, id sdk.CheckpointID, state protocol.CoordinatorState)
	// Declined: the cut cannot be made now.
	Declined(epoch protocol.Epoch, id sdk.CheckpointID, err error)
	// CheckpointWanted: the enumerator waits for a checkpoint.
	CheckpointWanted(epoch protocol.Epoch)
	// ReaderBroken: a reader's mailbox violated an invariant; the attempt has to be restarted.
	ReaderBroken(reader sdk.ReaderID, attempt protocol.Attempt, err error)
	// Failed says why the epoch ended.
	Failed(epoch protocol.Epoch, err error)
}

var (
	// ErrNotRegistered marks a command to a reader that has not registered with this epoch.
	ErrNotRegistered = errors.New("reader is not registered")
	// ErrOverflow marks an inbox that reached its bound, which its senders' own bounds should make impossible.
	ErrOverflow = errors.New("coordinator inbox overflow")
	// ErrReserved marks reserved mailbox capacity that ran out: an invariant violation.
	ErrReserved = errors.New("reserved mailbox capacity exhausted")
	// ErrStuck marks an enumerator call that did not return within the cancellation timeout.
	ErrStuck = errors.New("enumerator call did not return")
)

// Restored is what a new epoch starts from: one cut.
type Restored struct {
	Coordinator protocol.CoordinatorState
	Readers     []protocol.ReaderState
}
