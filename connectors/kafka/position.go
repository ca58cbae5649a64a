package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Position says where to start or to stop, before it is resolved to offsets. Make one with [Earliest], [Latest], [Timestamp]
// or [Offsets]. The zero value means earliest as a start, and no stop as a stop. Values are immutable.
type Position struct {
	kind    positionKind
	at      time.Time
	offsets map[string]map[int32]int64
	// group and otherwise are of a committed position.
	group     string
	otherwise positionKind
}

type positionKind uint8

const (
	unsetPosition positionKind = iota
	earliestPosition
	latestPosition
	timestampPosition
	offsetsPosition
	committedPosition
)

// Earliest is the first record that the log still holds. It is no stop.
func Earliest() Position { return Position{kind: earliestPosition} }

// Latest is the end of the log at the moment of the first discovery. With [ReadCommitted] that is before the first open
// transaction, so that nothing of a transaction that commits later is skipped at a start, or waited for at a stop.
func Latest() Position { return Position{kind: latestPosition} }

// Timestamp is the first record with a timestamp at or after t, to the millisecond; the end of the log as in [Latest] when there is none.
// As a stop it is the first record that is not read.
func Timestamp(t time.Time) Position { return Position{kind: timestampPosition, at: t} }

// Offsets is an offset for each partition of each topic. As a start it is the first offset read and must lie in the log; as
// a stop the first that is not read, and it may not lie beyond the end of the log, where a bounded job would wait for ever.
// Every partition must be named. The maps are copied.
func Offsets(offsets map[string]map[int32]int64) Position {
	own := make(map[string]map[int32]int64, len(offsets))
	for topic, partitions := range offsets {
		own[topic] = maps.Clone(partitions)
	}
	return Position{kind: offsetsPosition, offsets: own}
}

// Committed is where a consumer group stands, so that a job can take over from a group or end where one is. As a stop it is the first
// record that is not read. The group is only looked at, once, at the first discovery; it may have members. otherwise is for partitions
// without an offset of the group: [Earliest] (no stop), [Latest], or the zero Position, which makes that an error.
func Committed(group string, otherwise Position) Position {
	return Position{kind: committedPosition, group: group, otherwise: otherwise.kind}
}

// IsZero reports that the position was not given.
func (p Position) IsZero() bool { return p.kind == unsetPosition }

// String describes the position completely, in a stable order.
func (p Position) String() string {
	switch p.kind {
	case unsetPosition:
		return "unset"
	case earliestPosition:
		return "earliest"
	case latestPosition:
		return "latest"
	case timestampPosition:
		return "timestamp " + p.at.UTC().Format(time.RFC3339Nano)
	case offsetsPosition:
		return "offsets " + p.offsetsText()
	case committedPosition:
		return fmt.Sprintf("committed by %q, otherwise %s", p.group, p.fallbackText())
	default:
		return "position(?)"
	}
}

func (p Position) fallbackText() string {
	if p.otherwise == unsetPosition {
		return "fail"
	}
	return Position{kind: p.otherwise}.String()
}

func (p Position) offsetsText() string {
	var parts []string
	for _, topic := range slices.Sorted(maps.Keys(p.offsets)) {
		for _, partition := range slices.Sorted(maps.Keys(p.offsets[topic])) {
			parts = append(parts, fmt.Sprintf("%s/%d:%d", topic, partition, p.offsets[topic][partition]))
		}
	}
	return strings.Join(parts, ",")
}

// millis is the timestamp to ask a broker for. Kafka's timestamps are whole milliseconds, so rounding up keeps "at or after".
func (p Position) millis() int64 {
	ms := p.at.UnixMilli()
	if p.at.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// validate returns the problems of the position as the value of field. known says whether a topic belongs to the source.
func (p Position) validate(field string, known func(topic string) bool) (problems []error) {
	if p.kind == timestampPosition && p.at.UnixMilli() < 0 {
		problems = append(problems, fmt.Errorf("%s: timestamp %s is before 1970: give a later time, or earliest", field, p.at.Format(time.RFC3339)))
	}
	if p.kind == committedPosition {
		return p.validateCommitted(field)
	}
	if p.kind != offsetsPosition {
		return problems
	}
	if len(p.offsets) == 0 {
		problems = append(problems, fmt.Errorf("%s: offsets is empty: name an offset for each partition", field))
	}
	for _, topic := range slices.Sorted(maps.Keys(p.offsets)) {
		if !known(topic) {
			problems = append(problems, fmt.Errorf("%s: offsets name topic %q, which this source does not read: remove it, or add it to topics", field, topic))
		}
		for _, partition := range slices.Sorted(maps.Keys(p.offsets[topic])) {
			if offset := p.offsets[topic][partition]; partition < 0 || offset < 0 {
				problems = append(problems, fmt.Errorf("%s: topic %q partition %d offset %d: neither may be negative", field, topic, partition, offset))
			}
		}
	}
	return problems
}

func (p Position) validateCommitted(field string) (problems []error) {
	if p.group == "" {
		problems = append(problems, fmt.Errorf("%s: committed: the group is missing", field))
	}
	switch p.otherwise {
	case unsetPosition, latestPosition:
	case earliestPosition:
		if field == "stop" {
			problems = append(problems, fmt.Errorf("%s: committed: a fallback of earliest would read nothing: use latest or fail", field))
		}
	case timestampPosition, offsetsPosition, committedPosition:
		problems = append(problems, fmt.Errorf("%s: committed: the fallback is one of earliest, latest and fail", field))
	}
	return problems
}
