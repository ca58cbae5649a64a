package checkpoint

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Storage keeps completed checkpoints and the numbers that a job has used. Methods may be called from any goroutine; those
// that change something wait for each other, or for ctx. They do I/O, so no loop calls them.
type Storage interface {
	// Write makes a manifest durable. When it returns without error the checkpoint is completed: a restore finds it after
	// any crash. An error that is [ErrUncertain] leaves open whether it is; after any other one it is not, and a later
	// checkpoint may be written. The manifest's ID must be above every stored one.
	Write(ctx context.Context, m *protocol.Manifest) (Info, error)
	// Latest returns the newest checkpoint, or [ErrNoCheckpoint]. When that cannot be used it fails and returns no older
	// one.
	Latest(ctx context.Context) (*protocol.Manifest, Info, error)
	// Read returns one checkpoint, or [ErrNoCheckpoint].
	Read(ctx context.Context, id sdk.CheckpointID) (*protocol.Manifest, Info, error)
	// Prune removes all checkpoints but the newest keep, which is at least 1. Savepoints are neither removed nor counted.
	Prune(ctx context.Context, keep int) error

	// ReserveAttempts returns the first of n attempt numbers, at least 1, that were never given out before and never will
	// be again, whatever crashes.
	ReserveAttempts(ctx context.Context, n int) (protocol.Attempt, error)
	// ReserveCheckpoints does the same for checkpoint numbers. They are above those of all stored checkpoints.
	ReserveCheckpoints(ctx context.Context, n int) (sdk.CheckpointID, error)
	// Raise makes all later numbers larger than these. A job that starts from a checkpoint of another directory calls it
	// with that manifest's ID and LastAttempt before it reserves anything.
	Raise(ctx context.Context, id sdk.CheckpointID, attempt protocol.Attempt) error

	// Close lets another process use the storage. It may be called twice; every other method fails after it.
	Close() error
}

// Info describes a stored checkpoint.
type Info struct {
	ID sdk.CheckpointID
	// Savepoint says that it is kept until somebody deletes it.
	Savepoint bool
	// Path of the file; empty for checkpoints in memory.
	Path string
	// Size of the file in bytes.
	Size int64
	// Modified is when the file was written, by the file system's clock.
	Modified time.Time

	// State and what follows is known to those who read the file: not to Prune. Err says why it is not Complete.
	State FileState
	Err   error
	// Job, Kind and Completed are the manifest's, when State is Complete.
	Job       string
	Kind      protocol.CheckpointKind
	Completed time.Time
}

var (
	// ErrNoCheckpoint says that there is no such checkpoint, or none at all. A job without one starts anew.
	ErrNoCheckpoint = errors.New("no completed checkpoint")

	// ErrUncertain says that a write failed at a point where the checkpoint may or may not survive a crash. The job must not
	// go on from here: it ends, and its next start goes on from what [Storage.Latest] then finds.
	ErrUncertain = errors.New("it is uncertain whether the checkpoint is stored")

	// ErrLocked says that another process uses the state directory. See [LockedError].
	ErrLocked = errors.New("state directory in use")

	// ErrOtherJob says that a state directory belongs to a job of another name.
	ErrOtherJob = errors.New("state directory of another job")

	// ErrStoreClosed says that a method was called after Close.
	ErrStoreClosed = errors.New("checkpoint store is closed")

	// ErrNewest says that the newest checkpoint was to be deleted.
	ErrNewest = errors.New("the newest checkpoint is never deleted")
)

// MaxFileBytes bounds a checkpoint file. What is larger is neither written nor read.
const MaxFileBytes = 1 << 30

// savepoint reports whether checkpoints of that kind are kept until somebody deletes them.
func savepoint(kind protocol.CheckpointKind) bool {
	switch kind {
	case protocol.Savepoint, protocol.Stop:
		return true
	case protocol.Periodic, protocol.Final:
		return false
	default:
		return false
	}
}
