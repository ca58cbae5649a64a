package protocol

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds on the number of elements (nested messages, and items of repeated fields) in one encoded message. They bound what
// a decoder allocates: the generated code spends up to some 150 bytes on an element that takes two bytes of input.
const (
	maxPayloadElements  = 1 << 17
	maxManifestElements = 1 << 20
	maxFixedElements    = 1 << 12 // messages without lists worth the name: envelope, ack, metadata
)

var (
	errUnknownField = errors.New("unknown field")
	errRepeated     = errors.New("field occurs twice")
	errWireType     = errors.New("wrong wire type")
	errElements     = errors.New("too many elements")
)

// unmarshal decodes body into m after walking it without allocating: only fields that m's type has, of the right wire type,
// each at most once unless it is a list, and not more than the given number of elements.
func unmarshal(body []byte, m proto.Message, elements int) error {
	if err := checkShape(m.ProtoReflect().Descriptor(), body, &elements); err != nil {
		return err
	}
	return proto.Unmarshal(body, m)
}

// checkShape walks one message. Nesting ends where the message types do; none contains itself.
func checkShape(md protoreflect.MessageDescriptor, b []byte, budget *int) error {
	var seen uint64 // by field number; all are below 64
	for len(b) > 0 {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		fd := md.Fields().ByNumber(number)
		if fd == nil {
			return fmt.Errorf("%w %d of %s", errUnknownField, number, md.Name())
		}
		if !fd.IsList() && seen&(1<<number) != 0 {
			return fmt.Errorf("%w: %s of %s", errRepeated, fd.Name(), md.Name())
		}
		seen |= 1 << number
		used, err := checkField(fd, wireType, b, budget)
		if err != nil {
			return err
		}
		b = b[used:]
	}
	return nil
}

// checkField walks one value at the beginning of b and returns its length.
func checkField(fd protoreflect.FieldDescriptor, wireType protowire.Type, b []byte, budget *int) (int, error) {
	n := protowire.ConsumeFieldValue(fd.Number(), wireType, b)
	if n < 0 {
		return 0, fmt.Errorf("%s: %w", fd.FullName(), protowire.ParseError(n))
	}
	if wireType != wireTypeOf(fd) {
		return 0, fmt.Errorf("%w %d for %s", errWireType, wireType, fd.FullName())
	}
	items := 0
	if fd.IsList() || fd.Message() != nil {
		items = 1
	}
	content, _ := protowire.ConsumeBytes(b[:n])
	if fd.IsPacked() {
		items = countVarints(content)
	}
	if *budget -= items; *budget < 0 {
		return 0, fmt.Errorf("%w in %s", errElements, fd.FullName())
	}
	if fd.Message() != nil {
		return n, checkShape(fd.Message(), content, budget)
	}
	return n, nil
}

// countVarints is the number of bytes that end a varint.
func countVarints(b []byte) int {
	n := 0
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// wireTypeOf is what the encoder writes for a field. The formats use these kinds only; a test holds it to that.
func wireTypeOf(fd protoreflect.FieldDescriptor) protowire.Type {
	if fd.IsPacked() {
		return protowire.BytesType
	}
	switch fd.Kind() { //nolint:exhaustive // the other kinds are not used by the formats
	case protoreflect.Fixed32Kind:
		return protowire.Fixed32Type
	case protoreflect.Sfixed64Kind:
		return protowire.Fixed64Type
	case protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	default:
		return protowire.VarintType
	}
}
