package protocol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	frameMagic  = "PNST"
	frameHeader = 16
)

// frameKind says what a frame contains. Numbers are part of the format.
type frameKind uint16

const (
	envelopeFrame frameKind = 1
	ackFrame      frameKind = 2
	metadataFrame frameKind = 3
	manifestFrame frameKind = 4
	countersFrame frameKind = 5
)

func (k frameKind) String() string {
	switch k {
	case envelopeFrame:
		return "command envelope"
	case ackFrame:
		return "admission ack"
	case metadataFrame:
		return "reader metadata"
	case manifestFrame:
		return "checkpoint manifest"
	case countersFrame:
		return "counters"
	default:
		return fmt.Sprintf("frame kind %d", uint16(k))
	}
}

// castagnoli is the table of CRC-32C. Written once, before anything can run.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C by which envelopes guard their payload and frames their body.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// seal encodes m as the body of a frame.
func seal(kind frameKind, version uint32, m proto.Message) ([]byte, error) {
	frame, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(make([]byte, frameHeader), m)
	if err != nil {
		return nil, fmt.Errorf("encode %v: %w", kind, err)
	}
	body := len(frame) - frameHeader
	if body > math.MaxUint32 {
		return nil, fmt.Errorf("encode %v: body of %d bytes, a frame holds at most %d", kind, body, uint32(math.MaxUint32))
	}
	copy(frame, frameMagic)
	binary.LittleEndian.PutUint16(frame[4:], uint16(kind))
	binary.LittleEndian.PutUint16(frame[6:], uint16(min(version, math.MaxUint16)))
	binary.LittleEndian.PutUint32(frame[8:], uint32(body))
	binary.LittleEndian.PutUint32(frame[12:], frameSum(frame))
	return frame, nil
}

// frameSum covers everything but the checksum itself.
func frameSum(frame []byte) uint32 {
	return crc32.Update(Checksum(frame[:12]), castagnoli, frame[frameHeader:])
}

// open checks a frame and returns its body, which shares b's memory. newest is the newest version that the caller reads.
func open(kind frameKind, newest uint32, b []byte) (body []byte, err error) {
	switch {
	case len(b) < frameHeader:
		return nil, corrupt(kind, "%d bytes, a frame has at least %d", len(b), frameHeader)
	case string(b[:4]) != frameMagic:
		return nil, corrupt(kind, "does not begin with %q", frameMagic)
	}
	length := uint64(binary.LittleEndian.Uint32(b[8:]))
	if have := uint64(len(b) - frameHeader); have != length {
		return nil, corrupt(kind, "body of %d bytes where the header says %d", have, length)
	}
	if sum := binary.LittleEndian.Uint32(b[12:]); sum != frameSum(b) {
		return nil, corrupt(kind, "checksum does not match")
	}
	if got := frameKind(binary.LittleEndian.Uint16(b[4:])); got != kind {
		return nil, corrupt(kind, "is a frame of kind %d (%v)", uint16(got), got)
	}
	version := uint32(binary.LittleEndian.Uint16(b[6:]))
	if version == 0 {
		return nil, corrupt(kind, "version 0 was never written")
	}
	if version > newest {
		return nil, sdk.UnknownVersion(kind.String(), int(version), int(newest))
	}
	return b[frameHeader:], nil
}

// corrupt reports bytes that no encoder wrote.
func corrupt(what fmt.Stringer, format string, args ...any) error {
	return fmt.Errorf("%w: %v: %s", sdk.ErrCorrupt, what, fmt.Sprintf(format, args...))
}
