package blackhole

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/penstock-dev/penstock/sdk"
)

// Check says what is checked of each split's records, within one life of a writer.
type Check string

// Checks.
const (
	Off        Check = "off"
	Order      Check = "order"      // offsets grow
	Continuity Check = "continuity" // offsets grow by one; transaction markers and compaction leave gaps that fail it
)

// Sink counts. Make it with [New]; a job owns it while it runs.
type Sink struct {
	check          Check
	records, bytes atomic.Int64
}

var _ sdk.Sink = (*Sink)(nil)

// New returns a sink; check is Off when empty.
func New(check Check) *Sink {
	if check == "" {
		check = Off
	}
	return &Sink{check: check}
}

// Totals are sums over all writers.
type Totals struct {
	Records int64
	Bytes   int64 // of keys, values and headers
}

// Totals may be called from any goroutine. It is exact up to the batches being written at the moment.
func (s *Sink) Totals() Totals { return Totals{Records: s.records.Load(), Bytes: s.bytes.Load()} }

// Name implements [sdk.Sink].
func (*Sink) Name() string { return "blackhole" }

// NewWriter implements [sdk.Sink].
func (s *Sink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	w := &writer{
		sink:    s,
		records: ctx.Metrics().Counter("records", "1", "Records that the blackhole swallowed."),
		bytes:   ctx.Metrics().Counter("bytes", "By", "Bytes of keys, values and headers that the blackhole swallowed."),
	}
	switch s.check {
	case Off:
	case Order, Continuity:
		w.last = map[split]int64{}
	default:
		return nil, sdk.Fatalf("blackhole sink: check %q is not known (off, order, continuity)", s.check)
	}
	return w, nil
}

// split tells sources apart that fill in only one of the two: the id, or the place.
type split struct {
	id        sdk.SplitID
	topic     string
	partition int32
}

type writer struct {
	sink           *Sink
	records, bytes sdk.Counter
	last           map[split]int64 // last offset; nil when nothing is checked
}

// maxSplits bounds the memory of a check. It is the number of splits that an engine tracks.
const maxSplits = 100_000

func (w *writer) Open(context.Context) error { return nil }

func (w *writer) Write(ctx context.Context, batch *sdk.Batch) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var records, bytes int64
	for rec := range batch.All() {
		records++
		bytes += rec.Size()
		if w.last != nil {
			if err := w.verify(rec); err != nil {
				return err
			}
		}
	}
	w.sink.records.Add(records)
	w.sink.bytes.Add(bytes)
	w.records.Add(records)
	w.bytes.Add(bytes)
	return nil
}

// verify fails the job for good: a restart would hide what a check is there to show.
func (w *writer) verify(rec *sdk.Record) error {
	s := split{rec.Split, rec.Topic, rec.Partition}
	last, known := w.last[s]
	switch {
	case !known && len(w.last) >= maxSplits:
		return sdk.Fatalf("blackhole sink: more than %d splits: the check of order keeps no more; switch it off", maxSplits)
	case known && rec.Offset <= last:
		return sdk.Fatalf("blackhole sink: %s: offset %d came after offset %d", s, rec.Offset, last)
	case known && w.sink.check == Continuity && rec.Offset != last+1:
		return sdk.Fatalf("blackhole sink: %s: offset %d came after offset %d: %d are missing", s, rec.Offset, last, rec.Offset-last-1)
	}
	w.last[s] = rec.Offset
	return nil
}

func (s split) String() string {
	if s.topic == "" {
		return fmt.Sprintf("split %q", s.id)
	}
	return fmt.Sprintf("topic %q partition %d", s.topic, s.partition)
}

func (w *writer) Flush(context.Context) error { return nil }

func (w *writer) Close(context.Context) error {
	w.last = nil
	return nil
}
