package connector

import (
	"log/slog"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// EnumeratorContext is [sdk.EnumeratorContext] without its types.
type EnumeratorContext interface {
	sdk.Scheduler
	Parallelism() int
	Readers() []sdk.ReaderID
	Assign(reader sdk.ReaderID, splits []protocol.Split) error
	NoMoreSplits(reader sdk.ReaderID) error
	SendEvent(reader sdk.ReaderID, event sdk.Event) bool
	RequestCheckpoint() bool
	Logger() *slog.Logger
	Metrics() sdk.Metrics
}

// Enumerator is an enumerator without its types. It has every optional ability; those that the typed one lacks do
// nothing. The rules of [sdk.Enumerator] hold.
type Enumerator interface {
	Start() error
	AddReader(reader sdk.ReaderInfo) error
	ReturnSplits(splits []protocol.Split) error
	Snapshot(checkpoint sdk.CheckpointID) (sdk.VersionedBytes, error)
	Close() error
	HandleSplitRequest(reader sdk.ReaderID) error
	HandleReaderEvent(reader sdk.ReaderID, event sdk.Event) error
	SplitsFinished(splits []protocol.Split) error
	CheckpointComplete(id sdk.CheckpointID) error
	CheckpointAborted(id sdk.CheckpointID) error
}

type enumeratorContext[S sdk.Split] struct {
	EnumeratorContext
	codec sdk.Codec[S]
}

func (c *enumeratorContext[S]) SplitCodec() sdk.Codec[S] { return c.codec }

func (c *enumeratorContext[S]) Assign(reader sdk.ReaderID, splits []S) error {
	encoded, err := encodeAll(c.codec, splits)
	if err != nil {
		return err
	}
	return c.EnumeratorContext.Assign(reader, encoded)
}

type enumerator[S sdk.Split] struct {
	codec      sdk.Codec[S]
	enumerator sdk.Enumerator[S]
}

func (e *enumerator[S]) Start() error { return Guard("Start", e.enumerator.Start) }

func (e *enumerator[S]) AddReader(reader sdk.ReaderInfo) error {
	return Guard("AddReader", func() error { return e.enumerator.AddReader(reader) })
}

func (e *enumerator[S]) ReturnSplits(splits []protocol.Split) error {
	return Guard("ReturnSplits", func() error {
		typed, err := decodeAll(e.codec, splits)
		if err != nil {
			return err
		}
		return e.enumerator.ReturnSplits(typed)
	})
}

func (e *enumerator[S]) Snapshot(checkpoint sdk.CheckpointID) (state sdk.VersionedBytes, err error) {
	err = Guard("Snapshot", func() (err error) {
		state, err = e.enumerator.Snapshot(checkpoint)
		return err
	})
	return state, err
}

func (e *enumerator[S]) Close() error { return Guard("Close", e.enumerator.Close) }

func (e *enumerator[S]) HandleSplitRequest(reader sdk.ReaderID) error {
	h, ok := e.enumerator.(sdk.SplitRequestHandler)
	if !ok {
		return nil
	}
	return Guard("HandleSplitRequest", func() error { return h.HandleSplitRequest(reader) })
}

func (e *enumerator[S]) HandleReaderEvent(reader sdk.ReaderID, event sdk.Event) error {
	h, ok := e.enumerator.(sdk.EnumeratorEventHandler)
	if !ok {
		return nil
	}
	return Guard("HandleReaderEvent", func() error { return h.HandleReaderEvent(reader, event) })
}

func (e *enumerator[S]) SplitsFinished(splits []protocol.Split) error {
	h, ok := e.enumerator.(sdk.FinishedHandler[S])
	if !ok {
		return nil
	}
	return Guard("SplitsFinished", func() error {
		typed, err := decodeAll(e.codec, splits)
		if err != nil {
			return err
		}
		return h.SplitsFinished(typed)
	})
}

func (e *enumerator[S]) CheckpointComplete(id sdk.CheckpointID) error {
	h, ok := e.enumerator.(sdk.CheckpointListener)
	if !ok {
		return nil
	}
	return Guard("CheckpointComplete", func() error { return h.CheckpointComplete(id) })
}

func (e *enumerator[S]) CheckpointAborted(id sdk.CheckpointID) error {
	h, ok := e.enumerator.(sdk.CheckpointListener)
	if !ok {
		return nil
	}
	return Guard("CheckpointAborted", func() error { return h.CheckpointAborted(id) })
}
