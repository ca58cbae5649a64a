package kinesis

import (
	"fmt"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// Name is the connector's name in job files.
const Name = "kinesis"

// Version is the connector's semantic version.
const Version = "1.0.0"

var (
	_ sdk.Source[Split] = (*Source)(nil)
	_ sdk.Positioner    = (*Source)(nil)
	_ sdk.Prober        = (*Source)(nil)
)

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability {
	return sdk.Capability{
		Connector:       Name,
		Version:         Version,
		Suite:           1,
		BoundedPoll:     true,
		Wakeup:          true,
		AttemptFencing:  true,
		AsyncEnumerator: true,
		SourceEvents:    true,
		OrderedLineage:  true,
	}
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return Codec{} }

// PositionAfter implements [sdk.Positioner]. A record does not know whether more parts of its aggregate follow, so the position is behind its
// part; it knows nothing of a stop, so a source with a Stop has no such positions.
func (s *Source) PositionAfter(rec *sdk.Record) (sdk.VersionedBytes, error) {
	if !s.Stop.IsZero() {
		return sdk.VersionedBytes{}, fmt.Errorf("kinesis: position after %s of %s: a record of a bounded source does not carry its stop: use positions of a source without stop", rec.Sequence, rec.Split)
	}
	at := lineage.AfterPart(rec.Sequence, rec.Offset)
	if !s.Aggregated {
		at.Sub = lineage.Whole
	}
	if !rec.Time.IsZero() {
		at.Millis = max(rec.Time.UnixMilli(), 0)
	}
	data, err := Codec{}.Encode(Split{Shard: string(rec.Split), Position: at})
	if err != nil {
		return sdk.VersionedBytes{}, err
	}
	return sdk.VersionedBytes{Version: codecVersion, Data: data}, nil
}
