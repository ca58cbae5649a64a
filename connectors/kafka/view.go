package kafka

import (
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// view presents records of one partition as the client holds them. Transaction markers are elements but no records.
type view struct {
	split   sdk.SplitID
	records []*kgo.Record
}

// Len implements [sdk.View].
func (v *view) Len() int { return len(v.records) }

// Bytes implements [sdk.View].
func (v *view) Bytes(from, to int) int64 { return payloadBytes(v.records[from:to], turnSamples) }

// Record implements [sdk.View]. The fields are set one by one: a composite literal would be built elsewhere and copied, for
// every record. Those that rarely differ from the record before are compared first: storing a pointer costs a write barrier
// while the garbage collector marks, and at millions of records a second it often does.
func (v *view) Record(i int, into *sdk.Record) bool {
	r := v.records[i]
	if r.Attrs.IsControl() {
		return false
	}
	into.Key = r.Key
	into.Value = r.Value
	if len(r.Headers) > 0 || into.Headers != nil {
		into.Headers = headers(r.Headers)
	}
	into.Time = r.Timestamp
	if into.Split != v.split {
		into.Split = v.split
	}
	if into.Topic != r.Topic {
		into.Topic = r.Topic
	}
	into.Partition = r.Partition
	into.Epoch = r.LeaderEpoch
	into.Offset = r.Offset
	if into.Sequence != "" {
		into.Sequence = ""
	}
	return true
}

// The conversion compiles only while both have the same fields in the same order, which is what makes headers right.
var _ = sdk.Header(kgo.RecordHeader{})

// headers presents the client's headers without copying them: the two types differ in their names only.
func headers(h []kgo.RecordHeader) []sdk.Header {
	if len(h) == 0 {
		return nil
	}
	return unsafe.Slice((*sdk.Header)(unsafe.Pointer(unsafe.SliceData(h))), len(h))
}

const (
	// turnSamples is how many records stand for the size of a turn's. Looking at a record whose memory is not in the cache costs
	// as much as everything else that is done with it on the reader's side, so it is the first, which lies behind one that
	// was looked at, and the last, which the position needs anyway.
	turnSamples = 2
	// fetchSamples is the same for what a fetch brought of a partition, thousands of records.
	fetchSamples = 16
	// largeRecord is the average size from which looking at each record costs nothing beside moving it.
	largeRecord = 1 << 10
)

// memoryOf estimates what fetched records occupy. Of small records, of which a fetch may bring a million, the client's structures are
// by far the larger part.
func memoryOf(records []*kgo.Record) int64 {
	return payloadBytes(records, fetchSamples) + int64(len(records))*memoryOfRecord
}

// payloadBytes estimates the payload of records from that many samples, at least two; it is exact for few or large records.
func payloadBytes(records []*kgo.Record, samples int) int64 {
	if len(records) <= samples {
		return exactBytes(records)
	}
	var sampled int64
	for i := range samples {
		sampled += recordBytes(records[i*(len(records)-1)/(samples-1)])
	}
	if sampled >= int64(samples)*largeRecord {
		return exactBytes(records)
	}
	return sampled * int64(len(records)) / int64(samples)
}

func exactBytes(records []*kgo.Record) (sum int64) {
	for _, r := range records {
		sum += recordBytes(r)
	}
	return sum
}

func recordBytes(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return int64(n)
}
