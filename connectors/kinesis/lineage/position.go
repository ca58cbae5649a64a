package lineage

import (
	"fmt"
	"strings"
	"time"
)

// Kind says what a [Position] is made of. The numbers are part of stored formats.
type Kind uint8

const (
	// Unresolved is no place yet: the start of a shard that is still to be made concrete. It is never given to a reader.
	Unresolved Kind = iota
	// TrimHorizon is the oldest record that the shard still holds.
	TrimHorizon
	// AtTimestamp is the first record that arrived at Millis or later.
	AtTimestamp
	// AtSequence is the record with that sequence number, itself included.
	AtSequence
	// AfterSequence is what follows the record with that sequence number, or, with a Sub that is not [Whole], what follows that
	// part of it.
	AfterSequence

	numKinds
)

// Whole is the [Position.Sub] of a record that was read completely, or is not an aggregate.
const Whole = int64(-1)

// maxSequence bounds a sequence number in digits. Kinesis uses 56; a bound keeps a flipped bit from becoming an allocation.
const maxSequence = 128

// Position is a concrete place in a shard, or [Unresolved]. Values are immutable and comparable with ==.
type Position struct {
	Kind Kind
	// Millis is a time in milliseconds since 1970: the one of AtTimestamp; of AfterSequence when that record arrived, or, later, when it was
	// seen that nothing followed it yet, 0 when that is not known.
	Millis   int64
	Sequence string // decimal digits, of AtSequence and AfterSequence
	// Sub is the sub-sequence number of the last part of an aggregated record that was read, [Whole] when all of it was. It is Whole
	// for every kind but AfterSequence.
	Sub int64
}

// FromTrimHorizon returns the place of the oldest record.
func FromTrimHorizon() Position { return Position{Kind: TrimHorizon, Sub: Whole} }

// FromTime returns the place of the first record that arrived at t or later, to the millisecond.
func FromTime(t time.Time) Position {
	return Position{Kind: AtTimestamp, Millis: t.UnixMilli(), Sub: Whole}
}

// At returns the place of the record with that number.
func At(sequence string) Position {
	return Position{Kind: AtSequence, Sequence: sequence, Sub: Whole}
}

// After returns the place behind the record with that number.
func After(sequence string) Position {
	return Position{Kind: AfterSequence, Sequence: sequence, Sub: Whole}
}

// AfterPart returns the place behind one part of an aggregated record.
func AfterPart(sequence string, sub int64) Position {
	return Position{Kind: AfterSequence, Sequence: sequence, Sub: sub}
}

// Concrete reports that the position names the same place whenever it is used.
func (p Position) Concrete() bool { return p.Kind != Unresolved }

// String describes the position for people.
func (p Position) String() string {
	switch p.Kind {
	case Unresolved:
		return "unresolved"
	case TrimHorizon:
		return "trim horizon"
	case AtTimestamp:
		return "at " + time.UnixMilli(p.Millis).UTC().Format("2006-01-02T15:04:05.000Z")
	case AtSequence:
		return "at " + p.Sequence
	case AfterSequence:
		if p.Sub != Whole {
			return fmt.Sprintf("after %s part %d", p.Sequence, p.Sub)
		}
		return "after " + p.Sequence
	case numKinds:
	}
	return "position(?)"
}

// check reports what no position can be.
func (p Position) check() error {
	bySequence := p.Kind == AtSequence || p.Kind == AfterSequence
	switch {
	case p.Kind >= numKinds:
		return fmt.Errorf("kind %d", p.Kind)
	case bySequence != (p.Sequence != ""):
		return fmt.Errorf("kind %d with sequence number %q", p.Kind, p.Sequence)
	case !Digits(p.Sequence):
		return fmt.Errorf("%q is no sequence number", p.Sequence)
	case p.Millis != 0 && p.Kind != AtTimestamp && p.Kind != AfterSequence, p.Millis < 0:
		return fmt.Errorf("kind %d with time %d", p.Kind, p.Millis)
	case p.Sub < Whole, p.Sub != Whole && p.Kind != AfterSequence:
		return fmt.Errorf("kind %d with part %d", p.Kind, p.Sub)
	}
	return nil
}

// Digits reports that s can be (part of) a sequence number: decimal digits, not too many.
func Digits(s string) bool {
	if len(s) > maxSequence {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// CompareSequences compares two sequence numbers as the large integers that they are: those of one shard differ in length.
func CompareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		if len(a) < len(b) {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}
