package broken

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Split is a log and the next position in it.
type Split struct {
	Part, Next int
	End        int // where a bounded one ends; else never
	Owner      int // the reader that had it first, plus one; for a source that keeps to it
}

const never = math.MaxInt32

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID("log-" + strconv.Itoa(s.Part)) }

// Source reads a [System], with a defect.
type Source struct {
	defect Defect
	system *System
	ends   []int // of a bounded one

	mu       sync.Mutex
	assigned map[int]bool       // for a source that remembers it: what an enumerator of this process has assigned
	seen     map[int]int        // for a source that trusts the process: where each part was fetched last
	answers  map[place][]string // for a source that shares them
}

// place is a position in the split that a reader was given first, second and so on: the same for each reader.
type place struct{ slot, from int }

// New makes a source that does not end.
func New(system *System, defect Defect) *Source {
	return &Source{defect: defect, system: system, assigned: map[int]bool{}, seen: map[int]int{}, answers: map[place][]string{}}
}

// NewBounded makes a source that ends with what the system holds now.
func NewBounded(system *System, defect Defect) *Source {
	s := New(system, defect)
	s.ends = system.lengths()
	return s
}

// remembers reports whether a part is known to be assigned, and remembers it when it is now.
func (s *Source) remembers(part int, now bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assigned[part] = s.assigned[part] || now
	return s.assigned[part]
}

func (s *Source) has(d Defect) bool { return s.defect == d }

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability { return base.Capability("broken", "1.0.0") }

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return codec{s.defect} }

// at answers where a part starts.
func (s *Source) at(part int) Split {
	split := Split{Part: part, End: never}
	if s.ends != nil {
		split.End = 0
		if part < len(s.ends) {
			split.End = s.ends[part]
		}
	}
	return split
}

// codec writes four unsigned varints.
type codec struct{ defect Defect }

func (c codec) Version() int { return 1 }

func (c codec) Encode(s Split) ([]byte, error) {
	if s.Part < 0 || s.Next < 0 || s.End < 0 || s.Owner < 0 {
		return nil, errors.New("a negative number in a split")
	}
	if c.defect == ForgetsPosition {
		s.Next = min(s.Next, 10)
	}
	var b []byte
	if c.defect == ChangedEncoding {
		b = append(b, 1)
	}
	for _, v := range []int{s.Part, s.Next, s.End, s.Owner} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b, nil
}

func (c codec) Decode(version int, data []byte) (Split, error) {
	if version != 1 && c.defect != IgnoresVersion {
		return Split{}, sdk.UnknownVersion("broken split", version, 1)
	}
	if c.defect == ChangedEncoding {
		if len(data) == 0 || data[0] != 1 {
			return Split{}, fmt.Errorf("%w: broken split: no mark", sdk.ErrCorrupt)
		}
		data = data[1:]
	}
	var fields [4]int
	for i := range fields {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > math.MaxInt32 || n > 1 && data[n-1] == 0 {
			return Split{}, fmt.Errorf("%w: broken split: field %d", sdk.ErrCorrupt, i)
		}
		fields[i], data = int(v), data[n:]
	}
	if len(data) > 0 && c.defect != IgnoresRest {
		return Split{}, fmt.Errorf("%w: broken split: %d bytes left over", sdk.ErrCorrupt, len(data))
	}
	if c.defect == PanicsOnDamage {
		var table [64]int
		table[fields[0]]++
	}
	return Split{Part: fields[0], Next: fields[1], End: fields[2], Owner: fields[3]}, nil
}
