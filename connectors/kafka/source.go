package kafka

import (
	"fmt"

	"github.com/penstock-dev/penstock/sdk"
)

// Name is the connector's name in job files.
const Name = "kafka"

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
	}
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return Codec{} }

// PositionAfter implements [sdk.Positioner]. A record knows neither the id of its topic nor a stop, so the split has none:
// a source with a Stop has no such positions.
func (s *Source) PositionAfter(rec *sdk.Record) (sdk.VersionedBytes, error) {
	if !s.Stop.IsZero() {
		return sdk.VersionedBytes{}, fmt.Errorf("kafka: position after %s/%d@%d: a record of a bounded source does not carry its stop: use positions of a source without stop", rec.Topic, rec.Partition, rec.Offset)
	}
	after := Split{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset + 1, Epoch: rec.Epoch, Start: rec.Offset + 1, Stop: NoStop}
	data, err := Codec{}.Encode(after)
	if err != nil {
		return sdk.VersionedBytes{}, err
	}
	return sdk.VersionedBytes{Version: codecVersion, Data: data}, nil
}
