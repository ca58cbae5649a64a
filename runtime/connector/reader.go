package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Reader is a reader without its types. It has every optional ability; those that the typed reader lacks do nothing. The
// rules of [sdk.Reader] hold.
type Reader interface {
	Open(ctx context.Context) error
	// Poll is not guarded: the loop guards a whole run of turns at once.
	Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error)
	AddSplits(splits []protocol.Split) error
	Snapshot(checkpoint sdk.CheckpointID) ([]protocol.Split, error)
	Wakeup()
	Close() error
	NoMoreSplits() error
	HandleEvent(event sdk.Event) error
	PauseOrResume(pause, resume []sdk.SplitID) error
	CheckpointComplete(id sdk.CheckpointID) error
	CheckpointAborted(id sdk.CheckpointID) error
	// Encode turns what FinishSplit was given into bytes.
	Encode(split sdk.Split) (protocol.Split, error)
}

type reader[S sdk.Split] struct {
	codec  sdk.Codec[S]
	reader sdk.Reader[S]
}

func (r *reader[S]) Open(ctx context.Context) error {
	return Guard("Open", func() error { return r.reader.Open(ctx) })
}

func (r *reader[S]) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	return r.reader.Poll(turn, out)
}

func (r *reader[S]) AddSplits(splits []protocol.Split) error {
	return Guard("AddSplits", func() error {
		typed, err := decodeAll(r.codec, splits)
		if err != nil {
			return err
		}
		return r.reader.AddSplits(typed)
	})
}

func (r *reader[S]) Snapshot(checkpoint sdk.CheckpointID) (splits []protocol.Split, err error) {
	err = Guard("Snapshot", func() error {
		typed, err := r.reader.Snapshot(checkpoint)
		if err != nil {
			return err
		}
		splits, err = encodeAll(r.codec, typed)
		return err
	})
	return splits, err
}

// Wakeup runs on the watchdog's goroutine, which must survive a panic of the connector.
func (r *reader[S]) Wakeup() {
	_ = Guard("Wakeup", func() error { r.reader.Wakeup(); return nil })
}

func (r *reader[S]) Close() error {
	return Guard("Close", r.reader.Close)
}

func (r *reader[S]) NoMoreSplits() error {
	h, ok := r.reader.(sdk.NoMoreSplitsHandler)
	if !ok {
		return nil
	}
	return Guard("NoMoreSplits", h.NoMoreSplits)
}

func (r *reader[S]) HandleEvent(event sdk.Event) error {
	h, ok := r.reader.(sdk.EventHandler)
	if !ok {
		return fmt.Errorf("reader has no HandleEvent for event %q", event.Kind)
	}
	return Guard("HandleEvent", func() error { return h.HandleEvent(event) })
}

// ErrNoPauser marks a pause of a reader that cannot pause.
var ErrNoPauser = errors.New("reader cannot pause splits")

func (r *reader[S]) PauseOrResume(pause, resume []sdk.SplitID) error {
	h, ok := r.reader.(sdk.Pauser)
	if !ok {
		return ErrNoPauser
	}
	return Guard("PauseOrResume", func() error { return h.PauseOrResume(pause, resume) })
}

func (r *reader[S]) CheckpointComplete(id sdk.CheckpointID) error {
	h, ok := r.reader.(sdk.CheckpointListener)
	if !ok {
		return nil
	}
	return Guard("CheckpointComplete", func() error { return h.CheckpointComplete(id) })
}

func (r *reader[S]) CheckpointAborted(id sdk.CheckpointID) error {
	h, ok := r.reader.(sdk.CheckpointListener)
	if !ok {
		return nil
	}
	return Guard("CheckpointAborted", func() error { return h.CheckpointAborted(id) })
}

func (r *reader[S]) Encode(split sdk.Split) (protocol.Split, error) {
	typed, ok := split.(S)
	if !ok {
		return protocol.Split{}, sdk.Fatalf("FinishSplit was given a %T, the source's splits are %T", split, typed)
	}
	return encode(r.codec, typed)
}
