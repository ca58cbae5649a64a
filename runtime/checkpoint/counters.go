package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

const (
	countersFile = "counters"
	// maxCountersBytes bounds what is read of it.
	maxCountersBytes = 4096

	// Numbers are reserved in blocks, so that most reservations cost no disk access. A crash loses what is left of a block:
	// harmless for attempts, of which there are enough; few for checkpoints, whose numbers people read.
	attemptBlock    = 256
	checkpointBlock = 16

	// maxReserve bounds one reservation: a bug that asks for more would use up the numbers.
	maxReserve = 1 << 20
)

// loadCounters reads the counters file, or writes the first one of a new directory.
func (s *FileStore) loadCounters() error {
	data, err := s.dir.ReadFile(countersFile, maxCountersBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.newest > 0:
		return &FileError{
			Path: s.path(countersFile), State: Unreadable, Err: err,
			Remedy: "the directory has checkpoints but lost the file that keeps their numbers from being used twice: put it back, " +
				"or go on in an empty checkpoint.dir with --restore PATH of a checkpoint",
		}
	case errors.Is(err, fs.ErrNotExist):
		return s.writeFirst()
	case err != nil:
		return s.dirError("read", countersFile, err)
	}
	c, err := protocol.DecodeCounters(data)
	if err != nil {
		remedy := "put back a good copy, or go on in an empty checkpoint.dir with --restore PATH of a checkpoint"
		if stateOf(err) == NewerVersion {
			remedy = "use the newer build that wrote it"
		}
		return &FileError{Path: s.path(countersFile), State: stateOf(err), Err: err, Remedy: remedy}
	}
	if c.Job != s.job {
		return fmt.Errorf("%w: %s belongs to job %q, this job is %q: choose another checkpoint.dir, or give the job its old name",
			ErrOtherJob, s.dir.Path(), c.Job, s.job)
	}
	s.given, s.reserved = *c, *c
	s.given.NextCheckpoint = max(s.given.NextCheckpoint, s.newest+1)
	return nil
}

func (s *FileStore) writeFirst() error {
	first := protocol.Counters{Job: s.job, NextAttempt: 1, NextCheckpoint: 1}
	if err := s.writeCounters(first); err != nil {
		return err
	}
	s.given = first
	return nil
}

// writeCounters makes c durable. Until it is, nothing of it may be given out.
func (s *FileStore) writeCounters(c protocol.Counters) error {
	data, err := c.Encode()
	if err != nil {
		return err
	}
	if err := s.replace(countersFile, data); err != nil {
		return err
	}
	s.reserved = c
	return nil
}

// ReserveAttempts implements [Storage].
func (s *FileStore) ReserveAttempts(ctx context.Context, n int) (protocol.Attempt, error) {
	next, err := s.advance(ctx, n, func(c *protocol.Counters) error {
		if c.NextAttempt > math.MaxInt64-2*maxReserve {
			return errors.New("the attempt numbers are used up")
		}
		c.NextAttempt += protocol.Attempt(n)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reserve %d attempt numbers: %w", n, err)
	}
	return next.NextAttempt - protocol.Attempt(n), nil
}

// ReserveCheckpoints implements [Storage].
func (s *FileStore) ReserveCheckpoints(ctx context.Context, n int) (sdk.CheckpointID, error) {
	next, err := s.advance(ctx, n, func(c *protocol.Counters) error {
		if c.NextCheckpoint > maxCheckpoint-maxReserve {
			return errors.New("the checkpoint numbers are used up")
		}
		c.NextCheckpoint += sdk.CheckpointID(n)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reserve %d checkpoint numbers: %w", n, err)
	}
	return next.NextCheckpoint - sdk.CheckpointID(n), nil
}

// maxCheckpoint keeps numbers within the digits of a file name.
const maxCheckpoint = 999_999_999_999_999_999

// Raise implements [Storage].
func (s *FileStore) Raise(ctx context.Context, id sdk.CheckpointID, attempt protocol.Attempt) error {
	_, err := s.advance(ctx, 1, func(c *protocol.Counters) error {
		if id < 0 || id > maxCheckpoint-maxReserve || attempt > math.MaxInt64-2*maxReserve {
			return fmt.Errorf("checkpoint %d or attempt %d is out of range", id, attempt)
		}
		c.NextCheckpoint, c.NextAttempt = max(c.NextCheckpoint, id+1), max(c.NextAttempt, attempt+1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("raise the numbers above checkpoint %d and attempt %d: %w", id, attempt, err)
	}
	return nil
}

// advance applies change to the numbers given out, and makes a larger block durable first when they pass the present one.
func (s *FileStore) advance(ctx context.Context, n int, change func(*protocol.Counters) error) (protocol.Counters, error) {
	if n < 1 || n > maxReserve {
		return protocol.Counters{}, fmt.Errorf("%d is out of range, want 1 to %d", n, maxReserve)
	}
	if err := s.acquire(ctx); err != nil {
		return protocol.Counters{}, err
	}
	defer s.done()
	next := s.given
	if err := change(&next); err != nil {
		return protocol.Counters{}, err
	}
	block := s.reserved
	if next.NextAttempt > block.NextAttempt {
		block.NextAttempt = next.NextAttempt + attemptBlock
	}
	if next.NextCheckpoint > block.NextCheckpoint {
		block.NextCheckpoint = next.NextCheckpoint + checkpointBlock
	}
	if block != s.reserved {
		if err := s.writeCounters(block); err != nil {
			return protocol.Counters{}, err
		}
	}
	s.given = next
	return next, nil
}
