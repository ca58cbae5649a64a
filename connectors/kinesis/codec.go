package kinesis

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// codecVersion is the version that Codec writes.
const codecVersion = 1

// maxShardID and maxChildren bound what a split holds: ids as the service bounds them; a shard has two children, or one.
const (
	maxShardID  = 128
	maxChildren = 16
)

// Codec stores a [Split]. Version 1 is: the shard id with its length; when the stream was created and the stop, in milliseconds; the position
// and the hash keys as package lineage stores them; then 0, or 1 + how the reading ended, the number of children and their ids. Numbers are unsigned
// varints in their shortest form, so equal splits have equal bytes.
type Codec struct{}

var _ sdk.Codec[Split] = Codec{}

// Version implements [sdk.Codec].
func (Codec) Version() int { return codecVersion }

// Encode implements [sdk.Codec]. A split that Decode would refuse is an error.
func (Codec) Encode(s Split) ([]byte, error) {
	data := make([]byte, 0, 96)
	data = appendText(data, s.Shard)
	data = binary.AppendUvarint(data, uint64(s.Created))
	data = binary.AppendUvarint(data, uint64(s.Stop))
	data = lineage.AppendPosition(data, s.Position)
	data = lineage.AppendHashes(data, s.Hashes)
	if s.End == nil {
		data = append(data, 0)
	} else {
		data = append(data, 1+byte(s.End.How))
		data = binary.AppendUvarint(data, uint64(len(s.End.Children)))
		for _, c := range s.End.Children {
			data = appendText(data, c)
		}
	}
	if _, err := (Codec{}).Decode(codecVersion, data); err != nil {
		return nil, fmt.Errorf("kinesis: encode split: %w", err)
	}
	return data, nil
}

// Decode implements [sdk.Codec].
func (Codec) Decode(version int, data []byte) (Split, error) {
	if version != codecVersion {
		return Split{}, sdk.UnknownVersion("kinesis split", version, codecVersion)
	}
	in := &lineage.Reader{Rest: data}
	s := Split{Shard: shardID(in, "shard id")}
	s.Created = int64(in.Number("time of creation", math.MaxInt64))
	s.Stop = int64(in.Number("stop", math.MaxInt64))
	s.Position = in.Position()
	s.Hashes = in.Hashes()
	if end := in.Number("end", 1+uint64(lineage.AsLost)); end > 0 {
		s.End = &End{How: lineage.End(end - 1)}
		for n := in.Number("number of children", maxChildren); n > 0 && in.Err == nil; n-- {
			s.End.Children = append(s.End.Children, shardID(in, "child"))
		}
	}
	if in.Err == nil && !s.Position.Concrete() {
		in.Fail("the position is unresolved")
	}
	if in.End(); in.Err != nil {
		return Split{}, fmt.Errorf("kinesis split: %w", in.Err)
	}
	return s, nil
}

func shardID(in *lineage.Reader, what string) string {
	id := in.Text(what)
	if in.Err == nil && (id == "" || len(id) > maxShardID) {
		in.Fail("%s has %d bytes", what, len(id))
	}
	return id
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
