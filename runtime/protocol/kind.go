package protocol

import "strconv"

// Kinds lists every command kind of this version in the order of their numbers. The caller owns the slice.
func Kinds() []CommandKind {
	kinds := make([]CommandKind, 0, PauseOrResume)
	for k := AddSplits; k <= PauseOrResume; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// Known reports whether this version of the protocol has the kind.
func (k CommandKind) Known() bool { return k >= AddSplits && k <= PauseOrResume }

// Reserved reports whether the kind draws on the capacity that a mailbox keeps for controls. Only the engine itself makes
// such commands, and only a bounded number of each is ever outstanding per reader: that is why running out of reserved
// capacity is an invariant violation and not overload.
//
// Splits, no-more-splits, events and pauses start with a connector, which may send any number of them, so they take
// normal capacity and are told [RetryLater] at the bound.
func (k CommandKind) Reserved() bool {
	switch k {
	case Register, Barrier, CheckpointComplete, CheckpointAborted, GracefulClose, SchemaChangeBegin, SchemaChangeEnd:
		return true
	case AddSplits, NoMoreSplits, SourceEvent, PauseOrResume:
		return false
	default:
		return false
	}
}

// DurabilityOf is the one durability class that a kind may carry, or zero for a kind that this version does not know. Split
// assignment alone is coupled to checkpoints: its loss would lose records, so the assignment tracker keeps it until a
// completed checkpoint contains it. Every other control can be made again from the state of whoever sent it, except
// events, which promise nothing. [Terminal] is the class of cancel and fatal failure; these are signals beside the mailbox
// and never envelopes.
func DurabilityOf(k CommandKind) Durability {
	switch k {
	case AddSplits:
		return CheckpointCoupled
	case NoMoreSplits, Register, Barrier, CheckpointComplete, CheckpointAborted, GracefulClose, SchemaChangeBegin,
		SchemaChangeEnd, PauseOrResume:
		return Reconstructable
	case SourceEvent:
		return Ephemeral
	default:
		return 0
	}
}

// The names below are metric label values and part of golden test output: change none of them.

func (k CommandKind) String() string {
	switch k {
	case AddSplits:
		return "add_splits"
	case NoMoreSplits:
		return "no_more_splits"
	case SourceEvent:
		return "source_event"
	case Register:
		return "register"
	case Barrier:
		return "barrier"
	case CheckpointComplete:
		return "checkpoint_complete"
	case CheckpointAborted:
		return "checkpoint_aborted"
	case GracefulClose:
		return "graceful_close"
	case SchemaChangeBegin:
		return "schema_change_begin"
	case SchemaChangeEnd:
		return "schema_change_end"
	case PauseOrResume:
		return "pause_or_resume"
	default:
		return unknown("CommandKind", uint8(k))
	}
}

func (d Durability) String() string {
	switch d {
	case CheckpointCoupled:
		return "checkpoint_coupled"
	case Reconstructable:
		return "reconstructable"
	case Ephemeral:
		return "ephemeral"
	case Terminal:
		return "terminal"
	default:
		return unknown("Durability", uint8(d))
	}
}

// Statuses lists every admission status in the order of their numbers. The caller owns the slice.
func Statuses() []Status {
	all := make([]Status, 0, InvalidPayload)
	for s := Accepted; s <= InvalidPayload; s++ {
		all = append(all, s)
	}
	return all
}

func (s Status) String() string {
	switch s {
	case Accepted:
		return "accepted"
	case Duplicate:
		return "duplicate"
	case RetryLater:
		return "retry_later"
	case StaleTarget:
		return "stale_target"
	case TerminalRejected:
		return "terminal_rejected"
	case UnsupportedProtocol:
		return "unsupported_protocol"
	case InvalidPayload:
		return "invalid_payload"
	default:
		return unknown("Status", uint8(s))
	}
}

// Reasons lists every reason in the order of their numbers, beginning with [ReasonNone]. The caller owns the slice.
func Reasons() []Reason {
	all := make([]Reason, 0, ReasonReserved+1)
	for r := ReasonNone; r <= ReasonReserved; r++ {
		all = append(all, r)
	}
	return all
}

func (r Reason) String() string {
	switch r {
	case ReasonNone:
		return "none"
	case ReasonMailboxCount:
		return "mailbox_count"
	case ReasonMailboxBytes:
		return "mailbox_bytes"
	case ReasonProcessBytes:
		return "process_bytes"
	case ReasonPayloadSize:
		return "payload_size"
	case ReasonChecksum:
		return "checksum"
	case ReasonHeader:
		return "header"
	case ReasonOldAttempt:
		return "old_attempt"
	case ReasonOldEpoch:
		return "old_epoch"
	case ReasonClosed:
		return "closed"
	case ReasonVersion:
		return "version"
	case ReasonSequenceWindow:
		return "sequence_window"
	case ReasonReserved:
		return "reserved"
	default:
		return unknown("Reason", uint8(r))
	}
}

// Known reports whether this version of the format has the kind.
func (k CheckpointKind) Known() bool { return k >= Periodic && k <= Stop }

func (k CheckpointKind) String() string {
	switch k {
	case Periodic:
		return "periodic"
	case Savepoint:
		return "savepoint"
	case Final:
		return "final"
	case Stop:
		return "stop"
	default:
		return unknown("CheckpointKind", uint8(k))
	}
}

// Known reports whether this version of the format has the lane.
func (l Lane) Known() bool { return l == LaneA || l == LaneB }

func (l Lane) String() string {
	switch l {
	case LaneA:
		return "A"
	case LaneB:
		return "B"
	default:
		return unknown("Lane", uint8(l))
	}
}

func unknown(what string, n uint8) string {
	return what + "(" + strconv.Itoa(int(n)) + ")"
}
