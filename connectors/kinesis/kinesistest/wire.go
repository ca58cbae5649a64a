package kinesistest

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// moment is a time as the protocol writes it: seconds since 1970 as a number, with three digits behind the point.
type moment struct{ time.Time }

// maxMoment keeps arithmetic on times from overflowing.
const maxMoment = 1e11

// MarshalJSON writes the number.
func (m moment) MarshalJSON() ([]byte, error) {
	ms := m.UnixMilli()
	return strconv.AppendFloat(nil, float64(ms)/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads the number.
func (m *moment) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || math.Abs(f) > maxMoment {
		return fmt.Errorf("time %s: want seconds since 1970 as a number", clip(string(data)))
	}
	m.Time = time.UnixMilli(int64(math.Round(f * 1000))).UTC()
	return nil
}

func momentOf(t time.Time) *moment { return &moment{t} }

type wireHashRange struct {
	StartingHashKey string
	EndingHashKey   string
}

type wireSequenceRange struct {
	StartingSequenceNumber string
	EndingSequenceNumber   string `json:",omitempty"`
}

type wireShard struct {
	ShardId               string
	ParentShardId         string `json:",omitempty"`
	AdjacentParentShardId string `json:",omitempty"`
	HashKeyRange          *wireHashRange
	SequenceNumberRange   *wireSequenceRange
}

type wireChild struct {
	ShardId      string
	ParentShards []string
	HashKeyRange *wireHashRange
}

type wireRecord struct {
	SequenceNumber              string
	ApproximateArrivalTimestamp *moment
	Data                        []byte
	PartitionKey                *string `json:",omitempty"`
	EncryptionType              string  `json:",omitempty"`
}

type wireConsumer struct {
	ConsumerName              string
	ConsumerARN               string
	ConsumerStatus            string
	ConsumerCreationTimestamp *moment
	StreamARN                 string `json:",omitempty"`
}

type wireMode struct{ StreamMode string }
