package kinesis

import (
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// element is what a fetch hands to the reader loop: a record, a part of an aggregated one, or something that only moves the position. A page has
// thousands of them, so it points to what is there anyway.
type element struct {
	stored *types.Record // as the service gave it
	part   *part         // of an aggregate; nil for a record that is none
	move   *move         // when set, this is no record
}

// move is a change of a split's state that comes with no record.
type move struct {
	to  lineage.Position
	end *End // set when reading ended there
}

// position is where the split stands once the element was emitted.
func (e *element) position() lineage.Position {
	if e.move != nil {
		return e.move.to
	}
	at := lineage.After(*e.stored.SequenceNumber)
	if e.part != nil && e.part.more {
		at.Sub = e.part.sub
	}
	if e.stored.ApproximateArrivalTimestamp != nil {
		at.Millis = max(e.stored.ApproximateArrivalTimestamp.UnixMilli(), 0)
	}
	return at
}

// payload is the record's key and value.
func (e *element) payload() (key, value []byte) {
	switch {
	case e.part != nil:
		return e.part.key, e.part.data
	case e.stored != nil:
		return bytesOf(e.stored.PartitionKey), e.stored.Data
	default:
		return nil, nil
	}
}

// sub is the number of the part in its aggregate, 0 for a record that is none.
func (e *element) sub() int64 {
	if e.part == nil {
		return 0
	}
	return e.part.sub
}

// size counts what will be emitted; what only moves the position weighs nothing.
func (e *element) size() int64 {
	if e.move != nil {
		return 0
	}
	key, value := e.payload()
	return int64(len(key) + len(value))
}

// bytesOf presents the text as bytes that nobody may change, without copying it. A stream that distributes records by itself has records
// without a partition key: nil is a null key.
func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	if *text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(*text), len(*text))
}

// view presents elements of one shard.
type view struct {
	stream   string
	split    sdk.SplitID
	elements []element
}

// Len implements [sdk.View].
func (v *view) Len() int { return len(v.elements) }

// Bytes implements [sdk.View].
func (v *view) Bytes(from, to int) (sum int64) {
	for i := from; i < to; i++ {
		sum += v.elements[i].size()
	}
	return sum
}

// unnumbered is the partition of a record whose part of the stream has a name, the split's, and no number.
const unnumbered = -1

// Record implements [sdk.View].
func (v *view) Record(i int, into *sdk.Record) bool {
	e := &v.elements[i]
	if e.move != nil {
		return false
	}
	into.Key, into.Value = e.payload()
	into.Headers, into.Time = nil, time.Time{}
	if e.stored.ApproximateArrivalTimestamp != nil {
		into.Time = *e.stored.ApproximateArrivalTimestamp
	}
	into.Split, into.Topic = v.split, v.stream
	into.Partition, into.Epoch = unnumbered, -1
	into.Sequence, into.Offset = *e.stored.SequenceNumber, e.sub()
	return true
}
