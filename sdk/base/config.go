package base

import (
	"context"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Chunk is what one fetch brought for one split, in order. It is immutable once returned from Fetch.
type Chunk[E any] struct {
	Split    sdk.SplitID
	Elements []E
	// Bytes is the payload size of all elements; an estimate is enough. It feeds the bound of the hand-over.
	Bytes int64
}

// Fetched is the result of one Fetch. The reader owns it after the return. A chunk of a split that is not assigned to this
// fetcher, or that it reported as finished before, is an error: dropped silently it would be lost data.
type Fetched[E any] struct {
	Chunks []Chunk[E]
	// Finished lists splits that ended after the elements in Chunks: nothing of them is fetched again.
	Finished []sdk.SplitID
	// Release, when set, is called once on the reader loop after the last element was emitted or dropped. Sinks may still
	// read an emitted record or view then, so what backs those must not be reused here. It does not block. (Only a
	// fetch that Close has given up waiting for is released on its own goroutine.)
	Release func()
}

// Change is what a fetcher is told before its next Fetch. Added are splits at the position to start from; Removed were
// given up with [Reader.RemoveSplits]; Paused and Resumed change who is to be fetched. What a client had buffered of a paused
// split may still come, in as many fetches as [Config.QueueFetches]; more end the reader with an error, because the reader would have to
// keep them. An added split is not paused, whatever was said of an earlier one with its id, but Paused may name it, so apply
// Added first. A split that Fetch itself reported as finished is not told back.
type Change[S sdk.Split] struct {
	Added           []S
	Removed         []sdk.SplitID
	Paused, Resumed []sdk.SplitID
}

// SplitReader fetches the splits of one fetcher. All methods are called from that fetcher's goroutine and never overlap.
type SplitReader[E any, S sdk.Split] interface {
	// Fetch blocks until there is something to hand over, ctx ends, or something fails. When ctx ends it returns soon:
	// with what it has, or with context.Cause(ctx). Nothing may be lost: the next Fetch goes on where this one stopped.
	// It is called only while at least one split is assigned and not paused. An error ends the reader, after what was
	// fetched before it (and what came with it) has been emitted; a panic counts as an error. A Fetch that brings nothing
	// should have waited: when several in a row return empty at once the fetcher pauses between them, 1 ms to 100 ms.
	Fetch(ctx context.Context) (Fetched[E], error)
	// HandleSplits applies a change. It does not block.
	HandleSplits(change Change[S]) error
	// Close is called once, after the last Fetch returned and every fetched batch was emitted or dropped.
	Close() error
}

// Defaults of [Config].
const (
	DefaultQueueFetches = 2
	DefaultQueueBytes   = 64 << 20
	DefaultMaxFetchers  = 16
)

// Config describes a reader to [NewReader]. E is a fetched element, S the split, St the mutable state of a split on the
// loop. St is often S itself; then ToState and ToSplit may stay nil.
type Config[E any, S sdk.Split, St any] struct {
	// Fetcher makes the split reader of one fetcher. It is called on that fetcher's goroutine. Required.
	Fetcher func() (SplitReader[E, S], error)

	// Emit turns one element into any number of records and advances the state past it, in this order or the other, but
	// both before it returns: none for an element that is filtered out, many for one that fans out. It runs on the reader
	// loop. A false from out.Emit ends it at once. Exactly one of Emit and EmitChunk is set.
	Emit func(element E, state *St, out sdk.Output) error

	// EmitChunk emits from the front of elements, as many as the turn's budgets allow, usually with out.EmitView, advances the
	// state past them and answers how many were consumed. It runs on the reader loop and is called again with the rest.
	EmitChunk func(elements []E, state *St, out sdk.Output) (consumed int, err error)

	// ToState and ToSplit convert between the split and its state on the loop. ToSplit is given a pointer that it must not
	// keep; the split it makes must share nothing that Emit changes later.
	ToState func(S) St
	ToSplit func(*St) S

	// FetcherOf chooses the fetcher of a split, 0 to MaxFetchers-1; nil means that one fetcher reads all splits.
	FetcherOf   func(S) int
	MaxFetchers int // default 16

	// QueueFetches and QueueBytes bound the hand-over of each fetcher: when either is reached the fetcher waits. One
	// fetch is always admitted, whatever its size.
	QueueFetches int   // default 2
	QueueBytes   int64 // default 64 MiB

	// RecordsPerSecond limits what this reader emits; 0 is no limit. After a pause up to a twentieth of a second's worth
	// may pass at once.
	RecordsPerSecond float64

	// OnCheckpoint is told of completed checkpoints, on the loop: the splits as they were in that snapshot, finished ones
	// included. Repeated and missing notices are possible.
	OnCheckpoint func(id sdk.CheckpointID, splits []S) error

	// CloseTimeout bounds how long Close waits for a running Fetch after its context was cancelled; default 10 s. A fetch that
	// ignores its context is then abandoned, and Close says so.
	CloseTimeout time.Duration
}
