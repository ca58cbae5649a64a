package protocol

import (
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Version is the command protocol that this build speaks. An envelope of another version is refused as
// [UnsupportedProtocol].
const Version = 1

// Attempt numbers one life of a reader or of a coordinator. Numbers never repeat within a job, not even across process
// restarts.
type Attempt uint64

// Epoch numbers one life of the coordinator.
type Epoch uint64

// Sequence numbers the commands of one sender epoch to one target attempt, from 1.
type Sequence uint64

// CommandKind says what a command does.
type CommandKind uint8

// The built-in commands. Numbers are part of the wire format.
const (
	AddSplits          CommandKind = 1
	NoMoreSplits       CommandKind = 2
	SourceEvent        CommandKind = 3
	Register           CommandKind = 4 // a new coordinator epoch asks for registration
	Barrier            CommandKind = 5
	CheckpointComplete CommandKind = 6
	CheckpointAborted  CommandKind = 7
	GracefulClose      CommandKind = 8
	SchemaChangeBegin  CommandKind = 9
	SchemaChangeEnd    CommandKind = 10
	PauseOrResume      CommandKind = 11
)

// Durability says what keeps a command's effect alive.
type Durability uint8

// Durability classes. Numbers are part of the wire format.
const (
	CheckpointCoupled Durability = 1
	Reconstructable   Durability = 2
	Ephemeral         Durability = 3
	Terminal          Durability = 4
)

// Envelope carries one ordered command. It is immutable once sent; Payload is shared, never changed.
type Envelope struct {
	ProtocolVersion uint32
	Job             string
	SourceRuntime   string // the source within the job
	Epoch           Epoch  // coordinator epoch
	Sender          Attempt
	Target          Attempt
	Sequence        Sequence
	Command         uint64 // command id: the same for every delivery of one command
	Kind            CommandKind
	Durability      Durability
	PayloadVersion  uint32
	PayloadChecksum uint32 // CRC-32C of Payload
	Payload         []byte
}

// Status answers an offer.
type Status uint8

// Admission statuses. Numbers are part of the wire format.
const (
	Accepted            Status = 1
	Duplicate           Status = 2
	RetryLater          Status = 3
	StaleTarget         Status = 4
	TerminalRejected    Status = 5
	UnsupportedProtocol Status = 6
	InvalidPayload      Status = 7
)

// Reason says why, from a fixed set so that it can be a metric label.
type Reason uint8

// Reasons. Numbers are part of the wire format.
const (
	ReasonNone           Reason = 0
	ReasonMailboxCount   Reason = 1
	ReasonMailboxBytes   Reason = 2
	ReasonProcessBytes   Reason = 3
	ReasonPayloadSize    Reason = 4
	ReasonChecksum       Reason = 5
	ReasonHeader         Reason = 6
	ReasonOldAttempt     Reason = 7
	ReasonOldEpoch       Reason = 8
	ReasonClosed         Reason = 9
	ReasonVersion        Reason = 10
	ReasonSequenceWindow Reason = 11
	ReasonReserved       Reason = 12 // reserved capacity exhausted: an invariant violation
)

// Ack answers an offer. Accepted means that validation passed, capacity is reserved, a mailbox sequence allocated and the
// command visible to the target attempt. It does not mean applied, nor checkpointed.
type Ack struct {
	Status          Status
	Target          Attempt
	MailboxSequence uint64
	RetryAfter      time.Duration // for RetryLater; millisecond resolution on the wire
	Reason          Reason
}

// Split is an encoded split.
type Split struct {
	ID   sdk.SplitID
	Data sdk.VersionedBytes
}

// AddSplitsPayload is the payload of AddSplits.
type AddSplitsPayload struct{ Splits []Split }

// NoMoreSplitsPayload is the payload of NoMoreSplits.
type NoMoreSplitsPayload struct{ Generation uint64 }

// SourceEventPayload is the payload of SourceEvent.
type SourceEventPayload struct{ Event sdk.Event }

// BarrierPayload is the payload of Barrier.
type BarrierPayload struct {
	Checkpoint sdk.CheckpointID
	Kind       CheckpointKind
}

// CheckpointPayload is the payload of CheckpointComplete and CheckpointAborted.
type CheckpointPayload struct{ Checkpoint sdk.CheckpointID }

// SchemaChangePayload is the payload of SchemaChangeBegin and SchemaChangeEnd.
type SchemaChangePayload struct {
	Checkpoint sdk.CheckpointID
	Request    uint64 // request epoch
}

// PauseOrResumePayload is the payload of PauseOrResume.
type PauseOrResumePayload struct{ Pause, Resume []sdk.SplitID }
