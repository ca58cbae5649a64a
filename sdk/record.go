package sdk

import (
	"iter"
	"time"
)

// Header is one name and value beside a record. Order and repeated names are kept.
type Header struct {
	Key   string
	Value []byte // nil is a null value
}

// Record is what flows from any source to any sink. The slices are read-only for everybody once emitted, and valid until
// the sink's Write returns: what must live longer is copied.
//
// A record carries its place in the system it came from. Together with the split id that place determines the split's
// position after the record; a source that implements [Positioner] derives it, so no position travels with each record.
type Record struct {
	Key     []byte // nil is null, empty is empty
	Value   []byte // nil is null, empty is empty
	Headers []Header
	Time    time.Time // event time; zero when the system has none

	// Split is filled in by the base reader when empty.
	Split SplitID

	// The place, as far as the system has such a notion. Sequence is for systems whose positions are not numbers. A Partition of -1
	// says that the parts of a topic have names: that of the split. Sequence is the place then, and Offset tells records of one Sequence
	// apart; the JSON lines of the shipped sinks (connectors/jsonl) are others for such records.
	Topic     string
	Partition int32
	Epoch     int32 // leader epoch or the like; -1 when unknown
	Offset    int64
	Sequence  string
}

// Size is the number of payload bytes, the unit of byte budgets.
func (r *Record) Size() int64 {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}

// Positioner is an optional ability of a [Source]: it derives, from a record's place, the encoded split as it stands just
// after that record. Engines that claim a position per record ask for it. It may be called from any goroutine.
type Positioner interface {
	PositionAfter(rec *Record) (VersionedBytes, error)
}

// View presents records that a client library already holds, without copying them. Once emitted it is immutable; the
// engine reads it from another goroutine until the sink has written the last of it, and then drops it.
type View interface {
	// Len is the number of elements. It never changes.
	Len() int
	// Bytes is the payload size of the elements from..to-1. An estimate is enough: it feeds budgets and metrics.
	Bytes(from, to int) int64
	// Record overwrites *into with element i. It reports false for an element that is no record: one that only advances
	// the position, such as a transaction marker.
	Record(i int, into *Record) bool
}

// Batch is what one turn of a reader emitted, in order. Sinks only range over it. A batch belongs to the writer during
// Write and is reused afterwards.
type Batch struct {
	records  []Record
	segments []segment
	elements int
	bytes    int64
	yielded  int // records that the last All yielded
	scratch  Record
}

// segment is a run of elements: of view when set, else of the batch's own records.
type segment struct {
	view     View
	from, to int
}

// Append adds a copy of rec, whose slices are shared, and returns its size. Engines and tests call it, sinks never do.
func (b *Batch) Append(rec *Record) int64 {
	b.records = append(b.records, *rec)
	size := rec.Size()
	b.elements++
	b.bytes += size
	n := len(b.records)
	if k := len(b.segments); k > 0 && b.segments[k-1].view == nil {
		b.segments[k-1].to = n
		return size
	}
	b.segments = append(b.segments, segment{from: n - 1, to: n})
	return size
}

// AppendView adds the elements from..to-1 of v and returns their size. Engines and tests call it, sinks never do.
func (b *Batch) AppendView(v View, from, to int) int64 {
	b.segments = append(b.segments, segment{view: v, from: from, to: to})
	size := v.Bytes(from, to)
	b.elements += to - from
	b.bytes += size
	return size
}

// Reset empties the batch and drops every reference it held, keeping its memory.
func (b *Batch) Reset() {
	clear(b.records)
	clear(b.segments)
	b.records, b.segments = b.records[:0], b.segments[:0]
	b.elements, b.bytes, b.yielded = 0, 0, 0
	b.scratch = Record{}
}

// Len is the number of elements, an upper bound of the records that All yields.
func (b *Batch) Len() int { return b.elements }

// Bytes is the payload size, exact for copied records and an estimate for views.
func (b *Batch) Bytes() int64 { return b.bytes }

// All yields the records in order. The pointer is valid only during its step of the loop.
func (b *Batch) All() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		b.yielded = 0
		for i := range b.segments {
			s := &b.segments[i]
			if s.view == nil {
				for j := s.from; j < s.to; j++ {
					b.yielded++
					if !yield(&b.records[j]) {
						return
					}
				}
				continue
			}
			for j := s.from; j < s.to; j++ {
				if !s.view.Record(j, &b.scratch) {
					continue
				}
				b.yielded++
				if !yield(&b.scratch) {
					return
				}
			}
		}
	}
}

// Records is how many records the last All yielded: all of them, when its loop ran to the end.
func (b *Batch) Records() int { return b.yielded }
