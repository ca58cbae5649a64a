package fake

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// Split is one sequence of records and the index of the next one.
type Split struct {
	Number int
	Next   int64
	End    int64 // the index it ends at; 0 is never
}

const idPrefix = "fake-"

func splitID(number int) sdk.SplitID { return sdk.SplitID(idPrefix + strconv.Itoa(number)) }

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return splitID(s.Number) }

// Describe implements [sdk.Describer].
func (s Split) Describe() []sdk.Attribute {
	end := "never"
	if s.End > 0 {
		end = strconv.FormatInt(s.End, 10)
	}
	return []sdk.Attribute{{Name: "record", Value: strconv.FormatInt(s.Next, 10)}, {Name: "end", Value: end}}
}

func (s Split) done() bool { return s.End > 0 && s.Next >= s.End }

// numberOf is the number in an id of ours.
func numberOf(id sdk.SplitID) (int, error) {
	text, ok := strings.CutPrefix(string(id), idPrefix)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || splitID(n) != id {
		return 0, fmt.Errorf("fake: %q is not the id of a fake split", id)
	}
	return n, nil
}

// splitVersion 1: number, next and end as unsigned varints.
const splitVersion = 1

type splitCodec struct{}

func (splitCodec) Version() int { return splitVersion }

func (splitCodec) Encode(s Split) ([]byte, error) {
	if s.Number < 0 || s.Next < 0 || s.End < 0 {
		return nil, fmt.Errorf("fake split %+v: negative", s)
	}
	b := binary.AppendUvarint(nil, uint64(s.Number))
	b = binary.AppendUvarint(b, uint64(s.Next))
	return binary.AppendUvarint(b, uint64(s.End)), nil
}

func (splitCodec) Decode(version int, data []byte) (Split, error) {
	if version != splitVersion {
		return Split{}, sdk.UnknownVersion("fake split", version, splitVersion)
	}
	var values [3]int64
	for i, most := range [...]uint64{MaxSplits, math.MaxInt64 - 1, math.MaxInt64 - 1} {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > most || n > 1 && data[n-1] == 0 {
			return Split{}, fmt.Errorf("%w: fake split: field %d", sdk.ErrCorrupt, i)
		}
		values[i], data = int64(v), data[n:]
	}
	if len(data) > 0 {
		return Split{}, fmt.Errorf("%w: fake split: %d bytes left over", sdk.ErrCorrupt, len(data))
	}
	return Split{Number: int(values[0]), Next: values[1], End: values[2]}, nil
}
