package base

import (
	"context"
	"errors"

	"github.com/penstock-dev/penstock/sdk"
)

var errSkeleton = errors.New("not built yet")

// Reader is the managed base reader.
type Reader[E any, S sdk.Split, St any] struct{ cfg Config[E, S, St] }

// NewReader returns a reader that has started nothing.
func NewReader[E any, S sdk.Split, St any](_ sdk.ReaderContext, cfg Config[E, S, St]) (*Reader[E, S, St], error) {
	return &Reader[E, S, St]{cfg: cfg}, errSkeleton
}

// Open implements [sdk.Reader].
func (r *Reader[E, S, St]) Open(context.Context) error { return errSkeleton }

// Poll implements [sdk.Reader].
func (r *Reader[E, S, St]) Poll(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) { return 0, errSkeleton }

// AddSplits implements [sdk.Reader].
func (r *Reader[E, S, St]) AddSplits([]S) error { return errSkeleton }

// RemoveSplits gives splits up without finishing them: their state is dropped and what was fetched of them is not emitted.
func (r *Reader[E, S, St]) RemoveSplits([]sdk.SplitID) error { return errSkeleton }

// Snapshot implements [sdk.Reader].
func (r *Reader[E, S, St]) Snapshot(sdk.CheckpointID) ([]S, error) { return nil, errSkeleton }

// Wakeup implements [sdk.Reader].
func (r *Reader[E, S, St]) Wakeup() {}

// Close implements [sdk.Reader].
func (r *Reader[E, S, St]) Close() error { return errSkeleton }

// NoMoreSplits implements [sdk.NoMoreSplitsHandler].
func (r *Reader[E, S, St]) NoMoreSplits() error { return errSkeleton }

// PauseOrResume implements [sdk.Pauser].
func (r *Reader[E, S, St]) PauseOrResume(_, _ []sdk.SplitID) error { return errSkeleton }

// CheckpointComplete implements [sdk.CheckpointListener].
func (r *Reader[E, S, St]) CheckpointComplete(sdk.CheckpointID) error { return errSkeleton }

// CheckpointAborted implements [sdk.CheckpointListener].
func (r *Reader[E, S, St]) CheckpointAborted(sdk.CheckpointID) error { return errSkeleton }
