package protocol

import (
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// CheckpointKind says why a checkpoint was taken.
type CheckpointKind uint8

// Kinds. Numbers are part of the file format.
const (
	Periodic  CheckpointKind = 1
	Savepoint CheckpointKind = 2 // kept until deleted
	Final     CheckpointKind = 3 // a bounded job ended with it
	Stop      CheckpointKind = 4 // savepoint after which the job stops: nothing is read behind its barrier
)

// Lane says which runtime a source runs in.
type Lane uint8

// Lanes. Numbers are part of the file format.
const (
	LaneA Lane = 1 // managed
	LaneB Lane = 2 // legacy
)

// Manifest is one completed checkpoint: everything that a restore needs.
type Manifest struct {
	Job         string
	ID          sdk.CheckpointID
	Kind        CheckpointKind
	Triggered   time.Time
	Completed   time.Time // when the manifest was written
	Parallelism int
	Exchange    string
	Lane        Lane
	Connector   string
	// ConnectorVersion is for people; CapabilityDigest decides.
	ConnectorVersion string
	CapabilityDigest string
	Sink             string
	// LastAttempt is the highest attempt and writer attempt number given out before the checkpoint.
	LastAttempt Attempt
	// Records is how many records sink tasks have written up to this cut, over all runs of the job.
	Records int64

	Coordinator CoordinatorState
	Readers     []ReaderState
	Sinks       []SinkState
}

// CoordinatorState is the coordinator's part: enumerator and tracker of one cut.
type CoordinatorState struct {
	Epoch      Epoch
	Enumerator sdk.VersionedBytes
	Tracker    []Assignment
	Generation uint64 // no-more-splits generation
	// Owing says that splits are on their way: with the enumerator, or sent and not admitted. It is not stored.
	Owing bool
}

// Assignment is a tracker entry that was dispatched and not yet known to be included in a checkpoint.
type Assignment struct {
	Reader   sdk.ReaderID
	Target   Attempt
	Epoch    Epoch
	Sequence Sequence
	Splits   []Split
}

// ReaderState is one reader's part.
type ReaderState struct {
	Reader   sdk.ReaderID
	Splits   []Split // unfinished
	Finished []Split // ended, and not yet contained in an earlier completed checkpoint
	Ended    bool    // the reader had returned EndOfInput
	Metadata Metadata
}

// SinkState is one sink task's part: what was prepared and is to be committed, oldest first.
type SinkState struct {
	Task     int
	Prepared []Prepared
	// Written is how many records this task attempt has written so far. It is not stored; [Manifest.Records] is.
	Written int64
}

// Prepared is what a writer's Prepare returned for one checkpoint.
type Prepared struct {
	Checkpoint sdk.CheckpointID
	Data       []byte
}
