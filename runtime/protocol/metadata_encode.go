package protocol

import (
	"fmt"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
)

// MaxLineage bounds [Metadata.Lineage].
const MaxLineage = 16

// MaxWatermarks bounds [Metadata.Watermarks].
const MaxWatermarks = 1024

// Encode returns the metadata as a frame. It fails for metadata that a decoder would refuse; the error names the field.
func (m *Metadata) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encode %v: %w", metadataFrame, err)
	}
	body := &wire.Metadata{
		CommandProtocolVersion: m.CommandProtocolVersion, ManagedLaneVersion: m.ManagedLaneVersion,
		Lineage: numbersToWire(m.Lineage), NoMoreSplitsGeneration: m.NoMoreSplitsGeneration, CapabilityDigest: []byte(m.CapabilityDigest),
	}
	for i := range m.Watermarks {
		w := &m.Watermarks[i]
		body.Watermarks = append(body.Watermarks, &wire.Watermark{Epoch: uint64(w.Epoch), Applied: uint64(w.Applied), Gaps: numbersToWire(w.Gaps)})
	}
	return seal(metadataFrame, m.MetadataVersion, body)
}

// DecodeMetadata decodes what [Metadata.Encode] wrote.
func DecodeMetadata(b []byte) (*Metadata, error) {
	body, err := open(metadataFrame, MetadataVersion, b)
	if err != nil {
		return nil, err
	}
	var w wire.Metadata
	if err := unmarshal(body, &w, MaxLineage+MaxWatermarks*(MaxGaps+1)); err != nil {
		return nil, corrupt(metadataFrame, "%v", err)
	}
	m := &Metadata{
		MetadataVersion: MetadataVersion, CommandProtocolVersion: w.GetCommandProtocolVersion(), ManagedLaneVersion: w.GetManagedLaneVersion(),
		Lineage: numbersFromWire[Attempt](w.GetLineage()), NoMoreSplitsGeneration: w.GetNoMoreSplitsGeneration(),
		CapabilityDigest: string(w.GetCapabilityDigest()),
	}
	for _, mark := range w.GetWatermarks() {
		m.Watermarks = append(m.Watermarks, Watermark{
			Epoch: Epoch(mark.GetEpoch()), Applied: Sequence(mark.GetApplied()), Gaps: numbersFromWire[Sequence](mark.GetGaps()),
		})
	}
	if err := m.check(); err != nil {
		return nil, corrupt(metadataFrame, "%v", err)
	}
	return m, nil
}

func (m *Metadata) check() error {
	switch {
	case m.MetadataVersion != MetadataVersion:
		return invalid("MetadataVersion", m.MetadataVersion, fmt.Sprint(MetadataVersion))
	case len(m.Lineage) > MaxLineage:
		return invalid("Lineage", fmt.Sprintf("%d attempts long", len(m.Lineage)), fmt.Sprintf("at most %d", MaxLineage))
	case len(m.Watermarks) > MaxWatermarks:
		return invalid("Watermarks", fmt.Sprintf("%d epochs long", len(m.Watermarks)), fmt.Sprintf("at most %d", MaxWatermarks))
	}
	for i := range m.Watermarks {
		if err := m.Watermarks[i].check(); err != nil {
			return fmt.Errorf("Watermarks[%d]: %w", i, err)
		}
	}
	return checkName("CapabilityDigest", m.CapabilityDigest, false)
}

func (w *Watermark) check() error {
	if len(w.Gaps) > MaxGaps {
		return invalid("Gaps", fmt.Sprintf("%d sequences long", len(w.Gaps)), fmt.Sprintf("at most %d", MaxGaps))
	}
	last := Sequence(0)
	for _, gap := range w.Gaps {
		if gap <= last || gap >= w.Applied {
			return invalid("Gaps", w.Gaps, fmt.Sprintf("ascending sequences below Applied, which is %d", w.Applied))
		}
		last = gap
	}
	return nil
}

func numbersToWire[T ~uint64](list []T) []uint64 {
	numbers := make([]uint64, len(list))
	for i, n := range list {
		numbers[i] = uint64(n)
	}
	return numbers
}

func numbersFromWire[T ~uint64](list []uint64) []T {
	if len(list) == 0 {
		return nil
	}
	numbers := make([]T, len(list))
	for i, n := range list {
		numbers[i] = T(n)
	}
	return numbers
}
