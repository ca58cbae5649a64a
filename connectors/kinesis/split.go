package kinesis

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// Split is a shard and the position in it. Values are immutable.
type Split struct {
	Shard string
	// Created is when the stream was created, in milliseconds since 1970, by which a stream that was created anew under its name is told;
	// 0 when that is not known.
	Created int64
	// Position is where reading goes on.
	Position lineage.Position
	// Stop is the arrival time, in milliseconds since 1970, from which on nothing is read; 0 for never.
	Stop int64
	// Hashes are the shard's hash keys, as far as they are known.
	Hashes lineage.HashRange
	// End is how reading ended; nil while it goes on.
	End *End
}

// End is how the reading of a shard ended.
type End struct {
	How lineage.End
	// Children are the shards that took its place, as far as the service named them.
	Children []string
}

var _ sdk.Describer = Split{}

// SplitID is the id of the shard.
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID(s.Shard) }

// Describe implements [sdk.Describer].
func (s Split) Describe() []sdk.Attribute {
	sequence, part, seen := "-", "-", "-"
	if s.Position.Sequence != "" {
		sequence = s.Position.Sequence
	}
	if s.Position.Sub != lineage.Whole {
		part = strconv.FormatInt(s.Position.Sub, 10)
	}
	if s.Position.Millis > 0 {
		seen = stamp(s.Position.Millis)
	}
	end, children := "-", "-"
	if s.End != nil {
		end = s.End.How.String()
		if len(s.End.Children) > 0 {
			children = strings.Join(s.End.Children, ",")
		}
	}
	stop := "-"
	if s.Stop > 0 {
		stop = stamp(s.Stop)
	}
	return []sdk.Attribute{
		{Name: "read", Value: s.readFrom()},
		{Name: "sequence", Value: sequence},
		{Name: "part", Value: part},
		{Name: "time", Value: seen},
		{Name: "stop", Value: stop},
		{Name: "end", Value: end},
		{Name: "children", Value: children},
	}
}

// readFrom says in words what is read next.
func (s Split) readFrom() string {
	switch p := s.Position; p.Kind {
	case lineage.TrimHorizon:
		return "from the oldest record"
	case lineage.AtTimestamp:
		return "from " + stamp(p.Millis)
	case lineage.AtSequence:
		return "from " + p.Sequence
	case lineage.AfterSequence:
		if p.Sub != lineage.Whole {
			return fmt.Sprintf("after %s part %d", p.Sequence, p.Sub)
		}
		return "after " + p.Sequence
	case lineage.Unresolved:
	}
	return "-"
}

func stamp(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}
