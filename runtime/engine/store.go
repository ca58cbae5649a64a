package engine

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// openStore opens the job's storage. release is to be called when the job has ended.
func openStore(ctx context.Context, j Job) (s checkpoint.Storage, release func() error, err error) {
	switch {
	case j.Checkpoint.Storage != nil:
		return j.Checkpoint.Storage, func() error { return nil }, nil
	case j.Checkpoint.Dir == "":
		s := checkpoint.NewMemory()
		return s, s.Close, nil
	default:
		s, err := checkpoint.Open(ctx, j.Checkpoint.Dir, checkpoint.FileOptions{Job: j.Name})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
}

// restored finds the checkpoint to go on from, nil for a job that starts anew.
func restored(ctx context.Context, j Job, s checkpoint.Storage) (*protocol.Manifest, error) {
	switch j.Restore.Mode {
	case None:
		return nil, nil
	case Path:
		m, _, err := checkpoint.ReadFile(j.Restore.Path)
		if err != nil {
			return nil, err
		}
		return m, s.Raise(ctx, m.ID, m.LastAttempt)
	case Auto:
		m, _, err := s.Latest(ctx)
		if errors.Is(err, checkpoint.ErrNoCheckpoint) {
			return nil, nil
		}
		return m, err
	default:
		return nil, fmt.Errorf("unknown restore mode %d", j.Restore.Mode)
	}
}

// reservedAttempts is how many attempt numbers a run takes at once: more than any restart policy can use up.
const reservedAttempts = 1 << 20

// reservedCheckpoints is how many checkpoint numbers a run takes at once. What is left of them when it ends is never used.
const reservedCheckpoints = 16

// numbers gives out the numbers of one run. They never repeat within a job, not even across process restarts. The job loop
// owns it; storage is asked beside the loop.
type numbers struct {
	attempt    protocol.Attempt // next
	checkpoint sdk.CheckpointID // next
	until      sdk.CheckpointID // first that is not reserved
	refilling  bool
}

func reserve(ctx context.Context, s checkpoint.Storage) (numbers, error) {
	attempt, err := s.ReserveAttempts(ctx, reservedAttempts)
	if err != nil {
		return numbers{}, err
	}
	id, err := s.ReserveCheckpoints(ctx, reservedCheckpoints)
	if err != nil {
		return numbers{}, err
	}
	return numbers{attempt: attempt, checkpoint: id, until: id + reservedCheckpoints}, nil
}

func (n *numbers) nextAttempt() protocol.Attempt {
	n.attempt++
	return n.attempt - 1
}

func (n *numbers) lastAttempt() protocol.Attempt { return n.attempt - 1 }

// nextCheckpoint reports false when none is reserved: the refill is under way.
func (j *job) nextCheckpoint() (sdk.CheckpointID, bool) {
	n := &j.numbers
	if n.until-n.checkpoint <= reservedCheckpoints/2 && !n.refilling {
		n.refilling = true
		j.io.Go(func() {
			first, err := j.store.ReserveCheckpoints(j.ctx, reservedCheckpoints)
			j.post(func() { j.refilled(first, err) })
		})
	}
	if n.checkpoint == n.until {
		return 0, false
	}
	n.checkpoint++
	return n.checkpoint - 1, true
}

// refilled appends a new block of numbers. A block that does not follow on replaces the rest of the old one.
func (j *job) refilled(first sdk.CheckpointID, err error) {
	n := &j.numbers
	n.refilling = false
	if err != nil {
		j.log.Warn("checkpoint numbers cannot be reserved", zap.Error(err))
		if n.checkpoint == n.until {
			j.storeFailed(err)
		}
		return
	}
	if first != n.until {
		n.checkpoint = first
	}
	n.until = first + reservedCheckpoints
}
