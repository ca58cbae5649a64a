package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// SplitID names a split for ever: the same part of the same system has the same id in every process and after every
// restart. It is the key by which ownership survives failover and rescale. Ids are at most [MaxSplitIDBytes] long.
type SplitID string

// MaxSplitIDBytes bounds a [SplitID].
const MaxSplitIDBytes = 1024

// Split is the unit of assignment together with the position in it: a Kafka partition and the next offset, a shard and
// the last sequence number. Values are immutable once handed to the engine.
type Split interface {
	SplitID() SplitID
}

// Attribute is one named fact for people: a column of `penstock checkpoints show`.
type Attribute struct {
	Name  string
	Value string
}

// Describer is an optional ability of a split: it says in words where it stands. Called by tools only, never while
// records flow.
type Describer interface {
	Describe() []Attribute
}

// VersionedBytes is encoded state with the version of the encoding. Whoever holds one owns Data and may keep it; nobody
// changes Data in place.
type VersionedBytes struct {
	Version int
	Data    []byte
}

// Codec turns a value into bytes that later versions of the connector can still read. All methods may be called from any
// goroutine and may overlap.
type Codec[T any] interface {
	// Version is the version that Encode writes, at least 1.
	Version() int
	// Encode returns bytes that the caller owns.
	Encode(T) ([]byte, error)
	// Decode reads bytes written by the given version. It keeps no reference to data. A version it does not know is
	// an error made with [UnknownVersion]; bytes that do not parse, or are left over, are an error that wraps
	// [ErrCorrupt]. It never panics, whatever the bytes.
	Decode(version int, data []byte) (T, error)
}

// ErrCorrupt marks encoded state that cannot be what an encoder wrote: torn, truncated, flipped, or with bytes left over.
// The engine fails the restore and names where the bytes came from.
var ErrCorrupt = errors.New("corrupt state")

// UnknownVersionError reports encoded state of a version that this build cannot read. The engine fails the restore.
type UnknownVersionError struct {
	What string // for example "kafka split"
	Got  int
	Max  int // newest version this build reads
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("%s has version %d, this build reads up to %d: use a newer build", e.What, e.Got, e.Max)
}

// UnknownVersion returns an [UnknownVersionError].
func UnknownVersion(what string, got, newest int) error {
	return &UnknownVersionError{What: what, Got: got, Max: newest}
}

// JSONCodec encodes T as JSON. It reads every version from 1 to Current alike, so a new version may add fields but not
// change the meaning of old ones; write a [Codec] of your own when that is not enough. Unknown fields are corrupt state.
type JSONCodec[T any] struct {
	Current int
}

// Version implements [Codec].
func (c JSONCodec[T]) Version() int { return max(c.Current, 1) }

// Encode implements [Codec].
func (c JSONCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

// Decode implements [Codec].
func (c JSONCodec[T]) Decode(version int, data []byte) (T, error) {
	var v T
	if version < 1 || version > c.Version() {
		return v, UnknownVersion(fmt.Sprintf("%T", v), version, c.Version())
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("%w: %T: %w", ErrCorrupt, v, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%w: %T: bytes after the value", ErrCorrupt, v)
	}
	return v, nil
}
