package sdk

import "context"

// Source is one configured connector value. Its methods may be called from any goroutine and may overlap; they do no I/O
// and start nothing: that is for Open and Start.
type Source[S Split] interface {
	Capability() Capability
	SplitCodec() Codec[S]
	// NewEnumerator makes the enumerator of one coordinator epoch. state is nil for a new job, else what Snapshot
	// returned. It is called on the coordinator loop.
	NewEnumerator(ctx EnumeratorContext[S], state *VersionedBytes) (Enumerator[S], error)
	// NewReader makes the reader of one attempt. It is called on the reader loop.
	NewReader(ctx ReaderContext) (Reader[S], error)
}

// Prober is an optional ability of a [Source]: Probe says early, and in words for a person, why the source cannot work:
// an address nobody listens on, a refused login, a missing topic. The engine calls it once before a job starts, on a
// goroutine of its own; ctx carries the time limit.
type Prober interface {
	Probe(ctx context.Context) error
}
