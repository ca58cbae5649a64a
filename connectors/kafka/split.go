package kafka

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	// NoStop is the [Split.Stop] of a split that never ends.
	NoStop = int64(-1)
	// NoEpoch is the [Split.Epoch] of a position whose leader epoch is not known.
	NoEpoch = int32(-1)
)

// Split is a partition and the position in it. Values are immutable.
type Split struct {
	Topic string
	// TopicID tells a topic from a later one of the same name. All zeros when the cluster has no topic ids (before 2.8), or
	// when the split comes from [Source.PositionAfter]; it is then not checked.
	TopicID   [16]byte
	Partition int32
	// Offset is the next offset to read.
	Offset int64
	// Epoch is the leader epoch of the record before Offset, which the broker compares with its log to detect that the log
	// was truncated and written anew; [NoEpoch] when unknown. Before the first record it is the epoch that came with the resolved start.
	Epoch int32
	// Start is the offset at which reading began.
	Start int64
	// Stop is the first offset that is not read, or [NoStop].
	Stop int64
}

var _ sdk.Describer = Split{}

// SplitID is the topic and the partition. Topic names may contain dashes; the partition is what follows the last one.
func (s Split) SplitID() sdk.SplitID { return s.place().splitID() }

// Describe implements [sdk.Describer]. Numbers are plain digits; an unknown epoch and an absent stop are "-".
func (s Split) Describe() []sdk.Attribute {
	return []sdk.Attribute{
		{Name: "topic", Value: s.Topic},
		{Name: "partition", Value: strconv.FormatInt(int64(s.Partition), 10)},
		{Name: "offset", Value: strconv.FormatInt(s.Offset, 10)},
		{Name: "start", Value: strconv.FormatInt(s.Start, 10)},
		{Name: "stop", Value: numberOrDash(s.Stop)},
		{Name: "leader epoch", Value: numberOrDash(int64(s.Epoch))},
		{Name: "topic id", Value: topicIDText(s.TopicID)},
	}
}

func (s Split) place() place { return place{s.Topic, s.Partition} }

// ended reports that nothing is left to read.
func (s Split) ended() bool { return s.Stop != NoStop && s.Offset >= s.Stop }

// place names a partition.
type place struct {
	topic     string
	partition int32
}

func (p place) splitID() sdk.SplitID {
	return sdk.SplitID(p.topic + "-" + strconv.FormatInt(int64(p.partition), 10))
}

// placeOf is the place that a split id names.
func placeOf(id sdk.SplitID) (place, bool) {
	dash := strings.LastIndexByte(string(id), '-')
	if dash < 0 {
		return place{}, false
	}
	n, err := strconv.ParseInt(string(id[dash+1:]), 10, 32)
	return place{string(id[:dash]), int32(n)}, err == nil
}

func (p place) String() string { return p.topic + "/" + strconv.FormatInt(int64(p.partition), 10) }

func numberOrDash(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func topicIDText(id [16]byte) string {
	if id == ([16]byte{}) {
		return "-"
	}
	return hex.EncodeToString(id[:])
}
