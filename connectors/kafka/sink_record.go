package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// copier makes the client's records of a batch. They outlive the call that brought the batch, so everything is copied: the
// records of one batch share one array, and their bytes another.
type copier struct {
	sink    *Sink
	records []kgo.Record
	bytes   []byte
}

func newCopier(s *Sink, batch *sdk.Batch) copier {
	return copier{s, make([]kgo.Record, 0, batch.Len()), make([]byte, 0, batch.Bytes())}
}

func (c *copier) copy(rec *sdk.Record) *kgo.Record {
	c.records = append(c.records, kgo.Record{}) // never grows: a batch yields at most Len records
	r := &c.records[len(c.records)-1]
	r.Topic = c.sink.Topic
	if c.sink.KeepTopic {
		r.Topic = rec.Topic
	}
	if c.sink.Partitioning == PartitionKeep {
		r.Partition = rec.Partition
	}
	r.Timestamp = rec.Time // zero becomes the present time
	r.Key, r.Value = c.keep(rec.Key), c.keep(rec.Value)
	if len(rec.Headers) > 0 {
		r.Headers = make([]kgo.RecordHeader, len(rec.Headers))
		for i := range rec.Headers {
			r.Headers[i] = kgo.RecordHeader{Key: rec.Headers[i].Key, Value: c.keep(rec.Headers[i].Value)}
		}
	}
	return r
}

// keep copies b and tells null from empty.
func (c *copier) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > cap(c.bytes)-len(c.bytes) {
		// The batch's size was an estimate. The full array lives on in the records that use it.
		c.bytes = make([]byte, 0, max(len(b), cap(c.bytes)))
	}
	from := len(c.bytes)
	c.bytes = append(c.bytes, b...)
	return c.bytes[from:len(c.bytes):len(c.bytes)]
}
