package base

import (
	"errors"

	"github.com/penstock-dev/penstock/sdk"
)

var errSkeleton = errors.New("not built yet")

// Enumerator discovers splits from time to time and assigns each once.
type Enumerator[S sdk.Split] struct{ cfg EnumeratorConfig[S] }

// NewEnumerator returns an enumerator that has started nothing.
func NewEnumerator[S sdk.Split](_ sdk.EnumeratorContext[S], _ *sdk.VersionedBytes, cfg EnumeratorConfig[S]) (*Enumerator[S], error) {
	return &Enumerator[S]{cfg: cfg}, errSkeleton
}

// Start implements [sdk.Enumerator].
func (e *Enumerator[S]) Start() error { return errSkeleton }

// AddReader implements [sdk.Enumerator].
func (e *Enumerator[S]) AddReader(sdk.ReaderInfo) error { return errSkeleton }

// ReturnSplits implements [sdk.Enumerator].
func (e *Enumerator[S]) ReturnSplits([]S) error { return errSkeleton }

// SplitsFinished implements [sdk.FinishedHandler].
func (e *Enumerator[S]) SplitsFinished([]S) error { return errSkeleton }

// CheckpointComplete implements [sdk.CheckpointListener].
func (e *Enumerator[S]) CheckpointComplete(sdk.CheckpointID) error { return errSkeleton }

// CheckpointAborted implements [sdk.CheckpointListener].
func (e *Enumerator[S]) CheckpointAborted(sdk.CheckpointID) error { return errSkeleton }

// Snapshot implements [sdk.Enumerator].
func (e *Enumerator[S]) Snapshot(sdk.CheckpointID) (sdk.VersionedBytes, error) {
	return sdk.VersionedBytes{}, errSkeleton
}

// Close implements [sdk.Enumerator].
func (e *Enumerator[S]) Close() error { return nil }

// Trigger starts a discovery now, or right after the one that is running. On the coordinator loop only.
func (e *Enumerator[S]) Trigger() {}
