package protocol

import (
	"fmt"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
)

// Header is what [NewEnvelope] needs beside the payload. Everything is required.
type Header struct {
	Job           string
	SourceRuntime string // the source within the job
	Epoch         Epoch
	Sender        Attempt
	Target        Attempt
	Sequence      Sequence
	Command       uint64
	Kind          CommandKind
}

// NewEnvelope encodes the payload and wraps it. It fails when the kind does not carry that payload or the payload breaks a
// bound, never for overload; the size limit is the mailbox's, which [Envelope.Validate] applies.
func NewEnvelope(h Header, p Payload) (*Envelope, error) {
	if p == nil || !p.carries(h.Kind) {
		return nil, fmt.Errorf("envelope: a %v command does not carry a %T", h.Kind, p)
	}
	version, data, err := EncodePayload(p)
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	return &Envelope{
		ProtocolVersion: Version,
		Job:             h.Job,
		SourceRuntime:   h.SourceRuntime,
		Epoch:           h.Epoch,
		Sender:          h.Sender,
		Target:          h.Target,
		Sequence:        h.Sequence,
		Command:         h.Command,
		Kind:            h.Kind,
		Durability:      DurabilityOf(h.Kind),
		PayloadVersion:  version,
		PayloadChecksum: Checksum(data),
		Payload:         data,
	}, nil
}

// Validate is the part of admission that looks at the command alone: protocol version, header, size, checksum, in this
// order, cheapest first. It answers [Accepted] when the command may go on to the questions about target and capacity. It
// reads the payload once for the checksum, and neither decodes nor allocates. maxPayload is in bytes.
func (e *Envelope) Validate(maxPayload int) (Status, Reason) {
	switch {
	case e.ProtocolVersion != Version:
		return UnsupportedProtocol, ReasonVersion
	case e.Kind.Known() && e.PayloadVersion > PayloadVersion:
		return UnsupportedProtocol, ReasonVersion
	case !e.headerValid():
		return InvalidPayload, ReasonHeader
	case len(e.Payload) > maxPayload:
		return InvalidPayload, ReasonPayloadSize
	case Checksum(e.Payload) != e.PayloadChecksum:
		return InvalidPayload, ReasonChecksum
	}
	return Accepted, ReasonNone
}

func (e *Envelope) headerValid() bool {
	return e.Kind.Known() && e.Durability == DurabilityOf(e.Kind) && e.PayloadVersion > 0 &&
		e.Epoch > 0 && e.Sender > 0 && e.Target > 0 && e.Sequence > 0 && e.Command > 0 &&
		checkName("Job", e.Job, true) == nil && checkName("SourceRuntime", e.SourceRuntime, true) == nil
}

// Encode returns the envelope as a frame whose version is the protocol version. It does not validate: what the receiver
// makes of it is admission's answer.
func (e *Envelope) Encode() ([]byte, error) {
	return seal(envelopeFrame, e.ProtocolVersion, &wire.Envelope{
		Job: []byte(e.Job), SourceRuntime: []byte(e.SourceRuntime), Epoch: uint64(e.Epoch), Sender: uint64(e.Sender), Target: uint64(e.Target),
		Sequence: uint64(e.Sequence), Command: e.Command, Kind: uint32(e.Kind), Durability: uint32(e.Durability),
		PayloadVersion: e.PayloadVersion, PayloadChecksum: e.PayloadChecksum, Payload: e.Payload,
	})
}

// DecodeEnvelope decodes what [Envelope.Encode] wrote. The header may still be invalid, which [Envelope.Validate] tells;
// the payload is not looked at.
func DecodeEnvelope(b []byte) (*Envelope, error) {
	body, err := open(envelopeFrame, Version, b)
	if err != nil {
		return nil, err
	}
	var m wire.Envelope
	if err := unmarshal(body, &m, maxFixedElements); err != nil {
		return nil, corrupt(envelopeFrame, "%v", err)
	}
	return &Envelope{
		ProtocolVersion: Version, Job: string(m.GetJob()), SourceRuntime: string(m.GetSourceRuntime()), Epoch: Epoch(m.GetEpoch()),
		Sender: Attempt(m.GetSender()), Target: Attempt(m.GetTarget()), Sequence: Sequence(m.GetSequence()), Command: m.GetCommand(),
		Kind: narrow[CommandKind](m.GetKind()), Durability: narrow[Durability](m.GetDurability()),
		PayloadVersion: m.GetPayloadVersion(), PayloadChecksum: m.GetPayloadChecksum(), Payload: filled(m.GetPayload()),
	}, nil
}
