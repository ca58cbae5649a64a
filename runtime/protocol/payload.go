package protocol

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
	"github.com/penstock-dev/penstock/sdk"
)

// PayloadVersion is the version that this build writes of every payload. Each payload's version counts by itself; so far
// all have only the first.
const PayloadVersion = 1

// Payload is what a command carries. The set is closed: the payload types of this package.
type Payload interface {
	// carries reports whether commands of that kind carry this payload.
	carries(CommandKind) bool
	check() error
	message() proto.Message
}

// RegisterPayload is the payload of Register: the envelope's header says everything.
type RegisterPayload struct{}

// GracefulClosePayload is the payload of GracefulClose: the envelope's header says everything.
type GracefulClosePayload struct{}

var (
	_ Payload = AddSplitsPayload{}
	_ Payload = NoMoreSplitsPayload{}
	_ Payload = SourceEventPayload{}
	_ Payload = RegisterPayload{}
	_ Payload = BarrierPayload{}
	_ Payload = CheckpointPayload{}
	_ Payload = GracefulClosePayload{}
	_ Payload = SchemaChangePayload{}
	_ Payload = PauseOrResumePayload{}
)

// EncodePayload returns the encoded payload and its version. It fails for a payload that a decoder would refuse; the error
// names the field.
func EncodePayload(p Payload) (version uint32, data []byte, err error) {
	if err := p.check(); err != nil {
		return 0, nil, fmt.Errorf("encode %T: %w", p, err)
	}
	m := p.message()
	data, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return 0, nil, fmt.Errorf("encode %T: %w", p, err)
	}
	budget := maxPayloadElements
	if err := checkShape(m.ProtoReflect().Descriptor(), data, &budget); err != nil {
		return 0, nil, fmt.Errorf("encode %T: %w", p, err)
	}
	return PayloadVersion, data, nil
}

// decodePayload is what all payload decoders do before they convert m.
func decodePayload(kind CommandKind, version uint32, data []byte, m proto.Message) error {
	if version == 0 {
		return corrupt(kind, "payload version 0 was never written")
	}
	if version > PayloadVersion {
		return sdk.UnknownVersion("payload of "+kind.String(), int(version), PayloadVersion)
	}
	if err := unmarshal(data, m, maxPayloadElements); err != nil {
		return corrupt(kind, "payload: %v", err)
	}
	return nil
}

// checked turns a decoded payload that breaks a rule into corrupt state.
func checked[P Payload](kind CommandKind, p P) (P, error) {
	if err := p.check(); err != nil {
		var none P
		return none, corrupt(kind, "payload: %v", err)
	}
	return p, nil
}

// DecodeAddSplits decodes the payload of AddSplits.
func DecodeAddSplits(version uint32, data []byte) (AddSplitsPayload, error) {
	var m wire.AddSplits
	if err := decodePayload(AddSplits, version, data, &m); err != nil {
		return AddSplitsPayload{}, err
	}
	return checked(AddSplits, AddSplitsPayload{Splits: splitsFromWire(m.GetSplits())})
}

func (AddSplitsPayload) carries(k CommandKind) bool { return k == AddSplits }
func (p AddSplitsPayload) check() error             { return checkSplits("Splits", p.Splits) }
func (p AddSplitsPayload) message() proto.Message {
	return &wire.AddSplits{Splits: splitsToWire(p.Splits)}
}

// DecodeNoMoreSplits decodes the payload of NoMoreSplits.
func DecodeNoMoreSplits(version uint32, data []byte) (NoMoreSplitsPayload, error) {
	var m wire.NoMoreSplits
	if err := decodePayload(NoMoreSplits, version, data, &m); err != nil {
		return NoMoreSplitsPayload{}, err
	}
	return checked(NoMoreSplits, NoMoreSplitsPayload{Generation: m.GetGeneration()})
}

func (NoMoreSplitsPayload) carries(k CommandKind) bool { return k == NoMoreSplits }
func (NoMoreSplitsPayload) check() error               { return nil }
func (p NoMoreSplitsPayload) message() proto.Message {
	return &wire.NoMoreSplits{Generation: p.Generation}
}

// DecodeSourceEvent decodes the payload of SourceEvent.
func DecodeSourceEvent(version uint32, data []byte) (SourceEventPayload, error) {
	var m wire.SourceEvent
	if err := decodePayload(SourceEvent, version, data, &m); err != nil {
		return SourceEventPayload{}, err
	}
	return checked(SourceEvent, SourceEventPayload{Event: sdk.Event{Kind: string(m.GetKind()), Data: versionedFromWire(m.GetData())}})
}

func (SourceEventPayload) carries(k CommandKind) bool { return k == SourceEvent }
func (p SourceEventPayload) check() error {
	return errors.Join(checkName("Event.Kind", p.Event.Kind, false), checkVersion("Event.Data", p.Event.Data.Version))
}

func (p SourceEventPayload) message() proto.Message {
	return &wire.SourceEvent{Kind: []byte(p.Event.Kind), Data: versionedToWire(p.Event.Data)}
}

// DecodeRegister decodes the payload of Register.
func DecodeRegister(version uint32, data []byte) (RegisterPayload, error) {
	return RegisterPayload{}, decodePayload(Register, version, data, &wire.Register{})
}

func (RegisterPayload) carries(k CommandKind) bool { return k == Register }
func (RegisterPayload) check() error               { return nil }
func (RegisterPayload) message() proto.Message     { return &wire.Register{} }

// DecodeBarrier decodes the payload of Barrier.
func DecodeBarrier(version uint32, data []byte) (BarrierPayload, error) {
	var m wire.Barrier
	if err := decodePayload(Barrier, version, data, &m); err != nil {
		return BarrierPayload{}, err
	}
	return checked(Barrier, BarrierPayload{Checkpoint: checkpointID(m.GetCheckpoint()), Kind: narrow[CheckpointKind](m.GetKind())})
}

func (BarrierPayload) carries(k CommandKind) bool { return k == Barrier }
func (p BarrierPayload) check() error {
	if !p.Kind.Known() {
		return invalid("Kind", p.Kind, "a checkpoint kind")
	}
	return checkCheckpoint("Checkpoint", p.Checkpoint)
}

func (p BarrierPayload) message() proto.Message {
	return &wire.Barrier{Checkpoint: uint64(p.Checkpoint), Kind: uint32(p.Kind)}
}

// DecodeCheckpoint decodes the payload of CheckpointComplete and CheckpointAborted.
func DecodeCheckpoint(version uint32, data []byte) (CheckpointPayload, error) {
	var m wire.CheckpointNotice
	if err := decodePayload(CheckpointComplete, version, data, &m); err != nil {
		return CheckpointPayload{}, err
	}
	return checked(CheckpointComplete, CheckpointPayload{Checkpoint: checkpointID(m.GetCheckpoint())})
}

func (CheckpointPayload) carries(k CommandKind) bool {
	return k == CheckpointComplete || k == CheckpointAborted
}
func (p CheckpointPayload) check() error { return checkCheckpoint("Checkpoint", p.Checkpoint) }
func (p CheckpointPayload) message() proto.Message {
	return &wire.CheckpointNotice{Checkpoint: uint64(p.Checkpoint)}
}

// DecodeGracefulClose decodes the payload of GracefulClose.
func DecodeGracefulClose(version uint32, data []byte) (GracefulClosePayload, error) {
	return GracefulClosePayload{}, decodePayload(GracefulClose, version, data, &wire.GracefulClose{})
}

func (GracefulClosePayload) carries(k CommandKind) bool { return k == GracefulClose }
func (GracefulClosePayload) check() error               { return nil }
func (GracefulClosePayload) message() proto.Message     { return &wire.GracefulClose{} }

// DecodeSchemaChange decodes the payload of SchemaChangeBegin and SchemaChangeEnd.
func DecodeSchemaChange(version uint32, data []byte) (SchemaChangePayload, error) {
	var m wire.SchemaChange
	if err := decodePayload(SchemaChangeBegin, version, data, &m); err != nil {
		return SchemaChangePayload{}, err
	}
	return checked(SchemaChangeBegin, SchemaChangePayload{Checkpoint: checkpointID(m.GetCheckpoint()), Request: m.GetRequest()})
}

func (SchemaChangePayload) carries(k CommandKind) bool {
	return k == SchemaChangeBegin || k == SchemaChangeEnd
}
func (p SchemaChangePayload) check() error { return checkCheckpoint("Checkpoint", p.Checkpoint) }
func (p SchemaChangePayload) message() proto.Message {
	return &wire.SchemaChange{Checkpoint: uint64(p.Checkpoint), Request: p.Request}
}

// DecodePauseOrResume decodes the payload of PauseOrResume.
func DecodePauseOrResume(version uint32, data []byte) (PauseOrResumePayload, error) {
	var m wire.PauseOrResume
	if err := decodePayload(PauseOrResume, version, data, &m); err != nil {
		return PauseOrResumePayload{}, err
	}
	return checked(PauseOrResume, PauseOrResumePayload{Pause: idsFromWire(m.GetPause()), Resume: idsFromWire(m.GetResume())})
}

func (PauseOrResumePayload) carries(k CommandKind) bool { return k == PauseOrResume }
func (p PauseOrResumePayload) check() error {
	for _, ids := range [][]sdk.SplitID{p.Pause, p.Resume} {
		for _, id := range ids {
			if len(id) == 0 || len(id) > sdk.MaxSplitIDBytes {
				return invalid("split id", fmt.Sprintf("%d bytes long", len(id)), fmt.Sprintf("1 to %d", sdk.MaxSplitIDBytes))
			}
		}
	}
	return nil
}

func (p PauseOrResumePayload) message() proto.Message {
	return &wire.PauseOrResume{Pause: idsToWire(p.Pause), Resume: idsToWire(p.Resume)}
}

func idsToWire(ids []sdk.SplitID) [][]byte {
	list := make([][]byte, len(ids))
	for i, id := range ids {
		list[i] = []byte(id)
	}
	return list
}

func idsFromWire(list [][]byte) []sdk.SplitID {
	if len(list) == 0 {
		return nil
	}
	ids := make([]sdk.SplitID, len(list))
	for i, id := range list {
		ids[i] = sdk.SplitID(id)
	}
	return ids
}

// checkpointID turns what is too large for an id into zero, which every check refuses.
func checkpointID(n uint64) sdk.CheckpointID {
	if n > math.MaxInt64 {
		return 0
	}
	return sdk.CheckpointID(n)
}
