package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/penstock-dev/penstock/sdk"
)

// codecVersion is the version that Codec writes.
const codecVersion = 1

// Codec stores a [Split]. Version 1 is: the topic with its length, the 16 bytes of the topic id, then partition,
// offset, epoch+1, start and stop+1. Lengths and numbers are unsigned varints in their shortest form, so equal splits
// have equal bytes.
type Codec struct{}

var _ sdk.Codec[Split] = Codec{}

// Version implements [sdk.Codec].
func (Codec) Version() int { return codecVersion }

// Encode implements [sdk.Codec]. A split that Decode would refuse is an error.
func (Codec) Encode(s Split) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("kafka: encode split: %w", err)
	}
	data := make([]byte, 0, 1+len(s.Topic)+len(s.TopicID)+5*binary.MaxVarintLen64)
	data = binary.AppendUvarint(data, uint64(len(s.Topic)))
	data = append(data, s.Topic...)
	data = append(data, s.TopicID[:]...)
	for _, n := range [...]int64{int64(s.Partition), s.Offset, int64(s.Epoch) + 1, s.Start, s.Stop + 1} {
		data = binary.AppendUvarint(data, uint64(n))
	}
	return data, nil
}

// Decode implements [sdk.Codec].
func (Codec) Decode(version int, data []byte) (Split, error) {
	if version != codecVersion {
		return Split{}, sdk.UnknownVersion("kafka split", version, codecVersion)
	}
	in := splitReader{rest: data}
	var s Split
	s.Topic = string(in.bytes(in.number(maxTopicName)))
	copy(s.TopicID[:], in.bytes(int64(len(s.TopicID))))
	s.Partition = int32(in.number(math.MaxInt32))
	s.Offset = in.number(math.MaxInt64)
	s.Epoch = int32(in.number(math.MaxInt32+1) - 1)
	s.Start = in.number(math.MaxInt64)
	s.Stop = in.number(math.MaxInt64) - 1
	if in.err == nil && len(in.rest) > 0 {
		in.err = fmt.Errorf("%d bytes after the split", len(in.rest))
	}
	if in.err == nil {
		in.err = s.check()
	}
	if in.err != nil {
		return Split{}, fmt.Errorf("%w: kafka split: %w", sdk.ErrCorrupt, in.err)
	}
	return s, nil
}

// check reports what no split can be. A stop of MaxInt64 has no encoding and is no offset.
func (s Split) check() error {
	switch {
	case !legalTopicName(s.Topic):
		return fmt.Errorf("%q is no topic name", s.Topic)
	case s.Partition < 0, s.Offset < 0, s.Epoch < NoEpoch, s.Start < 0, s.Stop < NoStop, s.Stop == math.MaxInt64:
		return fmt.Errorf("topic %q: partition %d, offset %d, epoch %d, start %d or stop %d out of range",
			s.Topic, s.Partition, s.Offset, s.Epoch, s.Start, s.Stop)
	}
	return nil
}

var errShort = errors.New("bytes are missing at the end")

// splitReader takes fields off the front of rest; after the first error it yields zeros.
type splitReader struct {
	rest []byte
	err  error
}

func (r *splitReader) number(highest int64) int64 {
	if r.err != nil {
		return 0
	}
	n, size := binary.Uvarint(r.rest)
	switch {
	case size == 0:
		r.err = errShort
	case size < 0 || n > uint64(highest):
		r.err = fmt.Errorf("a number exceeds %d", highest)
	case size > 1 && r.rest[size-1] == 0:
		r.err = errors.New("a number is not in its shortest form")
	}
	if r.err != nil {
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *splitReader) bytes(n int64) []byte {
	if r.err == nil && int64(len(r.rest)) < n {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}
