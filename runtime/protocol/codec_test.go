package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
	"github.com/penstock-dev/penstock/sdk"
)

func isFrame(s sample) bool { return !strings.Contains(s.file, "payload") }

// TestEveryFlippedBitIsFound flips each bit of each frame: the checksum must find it, and say corrupt and not newer.
func TestEveryFlippedBitIsFound(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		if !isFrame(s) {
			continue
		}
		good, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(good) {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := s.decode(bad); !errors.Is(err, sdk.ErrCorrupt) {
				t.Fatalf("%s: bit %d flipped: %v", s.file, bit, err)
			}
		}
	}
}

// TestEveryCutIsFound cuts each frame at each length, and adds a byte.
func TestEveryCutIsFound(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		good, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.decode(append(bytes.Clone(good), 0)); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s: one byte left over: %v", s.file, err)
		}
		if !isFrame(s) {
			continue
		}
		for n := range good {
			if _, err := s.decode(good[:n]); !errors.Is(err, sdk.ErrCorrupt) {
				t.Fatalf("%s: cut to %d bytes: %v", s.file, n, err)
			}
		}
	}
}

// reseal gives a frame another version and a checksum that fits.
func reseal(frame []byte, version uint16) []byte {
	b := bytes.Clone(frame)
	binary.LittleEndian.PutUint16(b[6:], version)
	binary.LittleEndian.PutUint32(b[12:], frameSum(b))
	return b
}

func TestNewerVersionIsNamed(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		if !isFrame(s) {
			continue
		}
		good, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.decode(reseal(good, 2))
		unknown, ok := errors.AsType[*sdk.UnknownVersionError](err)
		if !ok || unknown.Got != 2 || unknown.Max != 1 || unknown.What == "" {
			t.Errorf("%s as version 2: %v", s.file, err)
		}
		if _, err := s.decode(reseal(good, 0)); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s as version 0: %v", s.file, err)
		}
	}
	_, err := DecodeAddSplits(2, nil)
	if unknown, ok := errors.AsType[*sdk.UnknownVersionError](err); !ok || unknown.Got != 2 {
		t.Errorf("payload version 2: %v", err)
	}
	if _, err := DecodeAddSplits(0, nil); !errors.Is(err, sdk.ErrCorrupt) {
		t.Errorf("payload version 0: %v", err)
	}
}

// TestNewerMetadataInsideAManifest: the metadata's version is its own, also when it travels in a manifest.
func TestNewerMetadataInsideAManifest(t *testing.T) {
	t.Parallel()
	metadata := sampleMetadata()
	inner, err := metadata.Encode()
	if err != nil {
		t.Fatal(err)
	}
	outer, err := seal(manifestFrame, 1, &wire.Manifest{Readers: []*wire.Reader{{Metadata: reseal(inner, 9)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeManifest(outer)
	if unknown, ok := errors.AsType[*sdk.UnknownVersionError](err); !ok || unknown.Got != 9 || unknown.What != "reader metadata" {
		t.Errorf("got %v", err)
	}
}

// TestFramesAreNotConfused: a frame of one kind is no frame of another.
func TestFramesAreNotConfused(t *testing.T) {
	t.Parallel()
	ack, err := (&Ack{Status: Accepted}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeEnvelope(ack); !errors.Is(err, sdk.ErrCorrupt) || !strings.Contains(err.Error(), "admission ack") {
		t.Errorf("got %v", err)
	}
}

// TestForeignBodiesAreRefused feeds well-formed protobuf that no encoder of this version writes.
func TestForeignBodiesAreRefused(t *testing.T) {
	t.Parallel()
	varint := func(number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
	}
	valid := func() *wire.Manifest {
		frame, err := sampleManifest().Encode()
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Manifest
		if err := proto.Unmarshal(frame[frameHeader:], &m); err != nil {
			t.Fatal(err)
		}
		return &m
	}
	manifest := func(change func(*wire.Manifest)) []byte {
		m := valid()
		change(m)
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cases := map[string]struct {
		kind frameKind
		body []byte
	}{
		"unknown field":        {manifestFrame, manifest(func(m *wire.Manifest) { m.ProtoReflect().SetUnknown(varint(60, 1)) })},
		"large unknown field":  {manifestFrame, manifest(func(m *wire.Manifest) { m.ProtoReflect().SetUnknown(varint(1<<28, 1)) })},
		"nested unknown field": {manifestFrame, manifest(func(m *wire.Manifest) { m.Coordinator.ProtoReflect().SetUnknown(varint(9, 1)) })},
		"field twice":          {ackFrame, append(varint(1, 1), varint(1, 2)...)},
		"wrong wire type":      {ackFrame, protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 1)},
		"group":                {ackFrame, protowire.AppendTag(protowire.AppendTag(nil, 2, protowire.StartGroupType), 2, protowire.EndGroupType)},
		"status too large":     {ackFrame, varint(1, 257)},
		"reason too large":     {ackFrame, append(varint(1, 1), varint(5, 256)...)},
		"retry too long":       {ackFrame, append(varint(1, 3), varint(4, 1<<63)...)},
		"no status":            {ackFrame, nil},
		"bad UTF-8":            {manifestFrame, manifest(func(m *wire.Manifest) { m.Job = []byte("a\xff") })},
		"no job":               {manifestFrame, manifest(func(m *wire.Manifest) { m.Job = nil })},
		"long name":            {manifestFrame, manifest(func(m *wire.Manifest) { m.Sink = bytes.Repeat([]byte("x"), MaxNameBytes+1) })},
		"id zero":              {manifestFrame, manifest(func(m *wire.Manifest) { m.Id = 0 })},
		"id too large":         {manifestFrame, manifest(func(m *wire.Manifest) { m.Id = 1 << 63 })},
		"kind zero":            {manifestFrame, manifest(func(m *wire.Manifest) { m.Kind = 0 })},
		"kind wraps":           {manifestFrame, manifest(func(m *wire.Manifest) { m.Kind = 256 + 1 })},
		"lane unknown":         {manifestFrame, manifest(func(m *wire.Manifest) { m.Lane = 3 })},
		"no parallelism":       {manifestFrame, manifest(func(m *wire.Manifest) { m.Parallelism = 0 })},
		"parallelism":          {manifestFrame, manifest(func(m *wire.Manifest) { m.Parallelism = MaxParallelism + 1 })},
		"reader too large":     {manifestFrame, manifest(func(m *wire.Manifest) { m.Readers[0].Reader = MaxParallelism })},
		"task too large":       {manifestFrame, manifest(func(m *wire.Manifest) { m.Sinks[0].Task = 1 << 31 })},
		"records too many":     {manifestFrame, manifest(func(m *wire.Manifest) { m.Records = 1<<64 - 1 })},
		"no split id":          {manifestFrame, manifest(func(m *wire.Manifest) { m.Readers[0].Splits[0].Id = nil })},
		"long split id":        {manifestFrame, manifest(func(m *wire.Manifest) { m.Readers[1].Finished[0].Id = make([]byte, sdk.MaxSplitIDBytes+1) })},
		"split version":        {manifestFrame, manifest(func(m *wire.Manifest) { m.Coordinator.Tracker[0].Splits[0].Version = 1 << 31 })},
		"prepared id":          {manifestFrame, manifest(func(m *wire.Manifest) { m.Sinks[0].Prepared[0].Checkpoint = 0 })},
		"metadata torn":        {manifestFrame, manifest(func(m *wire.Manifest) { m.Readers[0].Metadata = m.Readers[0].Metadata[:20] })},
		"counters zero":        {countersFrame, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("orders"))},
		"gaps descend":         {metadataFrame, metadataBody(t, &wire.Watermark{Applied: 9, Gaps: []uint64{3, 2}})},
		"gap above applied":    {metadataFrame, metadataBody(t, &wire.Watermark{Applied: 9, Gaps: []uint64{9}})},
		"gap zero":             {metadataFrame, metadataBody(t, &wire.Watermark{Applied: 9, Gaps: []uint64{0}})},
		"too many gaps":        {metadataFrame, metadataBody(t, &wire.Watermark{Applied: 1 << 20, Gaps: ascending(MaxGaps + 1)})},
		"too many watermarks":  {metadataFrame, metadataBody(t, make([]*wire.Watermark, MaxWatermarks+1)...)},
	}
	for name, c := range cases {
		frame, err := seal(c.kind, 1, &wire.Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		frame = append(frame, c.body...)
		binary.LittleEndian.PutUint32(frame[8:], uint32(len(c.body)))
		frame = reseal(frame, 1)
		switch c.kind {
		case ackFrame:
			_, err = DecodeAck(frame)
		case manifestFrame:
			_, err = DecodeManifest(frame)
		case metadataFrame:
			_, err = DecodeMetadata(frame)
		case countersFrame:
			_, err = DecodeCounters(frame)
		case envelopeFrame:
			_, err = DecodeEnvelope(frame)
		}
		if !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func metadataBody(t *testing.T, marks ...*wire.Watermark) []byte {
	t.Helper()
	for i := range marks {
		if marks[i] == nil {
			marks[i] = &wire.Watermark{}
		}
	}
	b, err := proto.Marshal(&wire.Metadata{Watermarks: marks})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ascending(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i + 1)
	}
	return list
}

// TestEncodersRefuseWhatDecodersWould: a value that could not be read back fails when it is written, and says which field.
func TestEncodersRefuseWhatDecodersWould(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*Manifest){
		"Job":             func(m *Manifest) { m.Job = "\xff" },
		"ID":              func(m *Manifest) { m.ID = -1 },
		"Kind":            func(m *Manifest) { m.Kind = 99 },
		"Lane":            func(m *Manifest) { m.Lane = 0 },
		"Parallelism":     func(m *Manifest) { m.Parallelism = -1 },
		"Records":         func(m *Manifest) { m.Records = -1 },
		"Triggered":       func(m *Manifest) { m.Triggered = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"Completed":       func(m *Manifest) { m.Completed = time.Unix(0, 0) },
		"MetadataVersion": func(m *Manifest) { m.Readers[0].Metadata.MetadataVersion = 0 },
		"Lineage":         func(m *Manifest) { m.Readers[0].Metadata.Lineage = make([]Attempt, MaxLineage+1) },
		"Gaps":            func(m *Manifest) { m.Readers[0].Metadata.Watermarks[0].Gaps = []Sequence{99} },
		"Splits[0].ID":    func(m *Manifest) { m.Readers[0].Splits[0].ID = "" },
		"Enumerator":      func(m *Manifest) { m.Coordinator.Enumerator.Version = -1 },
		"Tracker[1]":      func(m *Manifest) { m.Coordinator.Tracker[1].Reader = -1 },
		"Prepared[1]":     func(m *Manifest) { m.Sinks[0].Prepared[1].Checkpoint = 0 },
		"elements":        func(m *Manifest) { m.Sinks[1].Prepared = manyPrepared(maxManifestElements) },
	}
	for field, breakIt := range cases {
		m := sampleManifest()
		breakIt(m)
		if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, p := range []Payload{
		AddSplitsPayload{Splits: []Split{{ID: ""}}},
		AddSplitsPayload{Splits: manySplits(maxPayloadElements + 1)},
		SourceEventPayload{sdk.Event{Kind: "\xff"}},
		BarrierPayload{Checkpoint: 1},
		BarrierPayload{Kind: Periodic},
		CheckpointPayload{Checkpoint: -1},
		SchemaChangePayload{},
		PauseOrResumePayload{Pause: []sdk.SplitID{sdk.SplitID(strings.Repeat("x", sdk.MaxSplitIDBytes+1))}},
	} {
		if _, _, err := EncodePayload(p); err == nil {
			t.Errorf("%T was encoded although it could not be decoded", p)
		}
	}
}

// TestElementsAreCountedAlike: the encoder's bound is the decoder's.
func TestElementsAreCountedAlike(t *testing.T) {
	t.Parallel()
	m := sampleManifest()
	frame, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	budget := m.elements()
	md := (&wire.Manifest{}).ProtoReflect().Descriptor()
	if err := checkShape(md, frame[frameHeader:], &budget); err != nil || budget != 0 {
		t.Errorf("%d elements of %d left: %v", budget, m.elements(), err)
	}
}

func manyPrepared(n int) []Prepared {
	list := make([]Prepared, n)
	for i := range list {
		list[i].Checkpoint = 1
	}
	return list
}

func manySplits(n int) []Split {
	list := make([]Split, n)
	for i := range list {
		list[i].ID = "s"
	}
	return list
}

// TestHostileInputAllocatesLittle gives the manifest decoder the input that makes the most of its bytes: empty elements.
func TestHostileInputAllocatesLittle(t *testing.T) {
	body := bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, 15, protowire.BytesType), nil), 2<<20)
	frame, err := seal(manifestFrame, 1, &wire.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	frame = append(frame, body...)
	binary.LittleEndian.PutUint32(frame[8:], uint32(len(body)))
	frame = reseal(frame, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = DecodeManifest(frame)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, sdk.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<16 {
		t.Errorf("refusing %d bytes of hostile input allocated %d", len(frame), grown)
	}
}

// TestShapeKnowsEveryField holds the formats to the field kinds and numbers that checkShape understands.
func TestShapeKnowsEveryField(t *testing.T) {
	t.Parallel()
	messages := wire.File_runtime_protocol_wire_penstock_proto.Messages()
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			fd := fields.Get(j)
			switch fd.Kind() { //nolint:exhaustive // the rest is what the test is about
			case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.BoolKind, protoreflect.Fixed32Kind,
				protoreflect.Sfixed64Kind, protoreflect.BytesKind, protoreflect.MessageKind:
			default:
				t.Errorf("%s is a %v, which checkShape does not know", fd.FullName(), fd.Kind())
			}
			if fd.Number() >= 64 || fd.IsMap() || fd.ContainingOneof() != nil {
				t.Errorf("%s: number, map or oneof that checkShape does not know", fd.FullName())
			}
			if fd.IsPacked() && fd.Kind() != protoreflect.Uint64Kind {
				t.Errorf("%s: countVarints counts varints only", fd.FullName())
			}
		}
	}
}

func TestValidate(t *testing.T) {
	const limit = 1 << 20
	cases := []struct {
		name   string
		change func(*Envelope)
		status Status
		reason Reason
	}{
		{"untouched", func(*Envelope) {}, Accepted, ReasonNone},
		{"newer protocol", func(e *Envelope) { e.ProtocolVersion = 2 }, UnsupportedProtocol, ReasonVersion},
		{"no protocol", func(e *Envelope) { e.ProtocolVersion = 0 }, UnsupportedProtocol, ReasonVersion},
		{"newer payload", func(e *Envelope) { e.PayloadVersion = 2 }, UnsupportedProtocol, ReasonVersion},
		{"no payload version", func(e *Envelope) { e.PayloadVersion = 0 }, InvalidPayload, ReasonHeader},
		{"no job", func(e *Envelope) { e.Job = "" }, InvalidPayload, ReasonHeader},
		{"job no UTF-8", func(e *Envelope) { e.Job = "\xff" }, InvalidPayload, ReasonHeader},
		{"no source", func(e *Envelope) { e.SourceRuntime = "" }, InvalidPayload, ReasonHeader},
		{"no epoch", func(e *Envelope) { e.Epoch = 0 }, InvalidPayload, ReasonHeader},
		{"no sender", func(e *Envelope) { e.Sender = 0 }, InvalidPayload, ReasonHeader},
		{"no target", func(e *Envelope) { e.Target = 0 }, InvalidPayload, ReasonHeader},
		{"no sequence", func(e *Envelope) { e.Sequence = 0 }, InvalidPayload, ReasonHeader},
		{"no command", func(e *Envelope) { e.Command = 0 }, InvalidPayload, ReasonHeader},
		{"unknown kind", func(e *Envelope) { e.Kind = 12 }, InvalidPayload, ReasonHeader},
		{"other durability", func(e *Envelope) { e.Durability = Ephemeral }, InvalidPayload, ReasonHeader},
		{"too large", func(e *Envelope) { e.Payload = make([]byte, limit+1) }, InvalidPayload, ReasonPayloadSize},
		{"flipped", func(e *Envelope) { e.Payload = append([]byte{1}, e.Payload[1:]...) }, InvalidPayload, ReasonChecksum},
		{"other checksum", func(e *Envelope) { e.PayloadChecksum++ }, InvalidPayload, ReasonChecksum},
	}
	for _, c := range cases {
		e := *sampleEnvelope()
		c.change(&e)
		if status, reason := e.Validate(limit); status != c.status || reason != c.reason {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, status, reason, c.status, c.reason)
		}
	}
	e := sampleEnvelope()
	if n := testing.AllocsPerRun(100, func() { e.Validate(limit) }); n != 0 {
		t.Errorf("admission allocates %v times", n)
	}
}

// TestEveryKindHasAPayload makes an envelope of each kind and tries all payloads that do not belong to it.
func TestEveryKindHasAPayload(t *testing.T) {
	t.Parallel()
	payloads := []Payload{
		AddSplitsPayload{},
		NoMoreSplitsPayload{},
		SourceEventPayload{},
		RegisterPayload{},
		BarrierPayload{Checkpoint: 1, Kind: Periodic},
		CheckpointPayload{Checkpoint: 1},
		GracefulClosePayload{},
		SchemaChangePayload{Checkpoint: 1},
		PauseOrResumePayload{},
	}
	for _, kind := range Kinds() {
		made := 0
		for _, p := range payloads {
			e, err := NewEnvelope(Header{Job: "j", SourceRuntime: "s", Epoch: 1, Sender: 1, Target: 1, Sequence: 1, Command: 1, Kind: kind}, p)
			if err != nil {
				continue
			}
			made++
			if status, reason := e.Validate(1 << 20); status != Accepted {
				t.Errorf("%v: %v, %v", kind, status, reason)
			}
		}
		if made != 1 {
			t.Errorf("%v is carried by %d payloads", kind, made)
		}
	}
	if _, err := NewEnvelope(Header{Kind: Barrier}, nil); err == nil {
		t.Error("an envelope without payload was made")
	}
}

// TestEnvelopeOfAnotherProtocolTravels: what a newer sender puts on the wire is refused by name, before its body is read.
func TestEnvelopeOfAnotherProtocolTravels(t *testing.T) {
	t.Parallel()
	e := sampleEnvelope()
	e.ProtocolVersion = 7
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeEnvelope(b)
	if unknown, ok := errors.AsType[*sdk.UnknownVersionError](err); !ok || unknown.Got != 7 {
		t.Errorf("got %v", err)
	}
}

// TestDecodedValuesShareNothing: a decoder keeps no reference to its input.
func TestDecodedValuesShareNothing(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		b, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := s.decode(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xAA
		}
		if !reflect.DeepEqual(decoded, s.value) {
			t.Errorf("%s: the decoded value changed with its input", s.file)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	b, err := (&Ack{Status: RetryLater, RetryAfter: 1}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	a, err := DecodeAck(b)
	if err != nil || a.RetryAfter != time.Millisecond {
		t.Errorf("1 ns came back as %v, %v", a, err)
	}
}

func BenchmarkManifest(b *testing.B) {
	m := sampleManifest()
	m.Readers[0].Splits = m.Readers[0].Splits[:0]
	for i := range 100_000 {
		m.Readers[0].Splits = append(m.Readers[0].Splits, Split{
			ID: sdk.SplitID(fmt.Sprintf("orders-%d", i)), Data: sdk.VersionedBytes{Version: 1, Data: make([]byte, 64)},
		})
	}
	frame, err := m.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			if _, err := m.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(frame)))
		for b.Loop() {
			if _, err := DecodeManifest(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
}
