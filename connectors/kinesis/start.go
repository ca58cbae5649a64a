package kinesis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// Position says where to start or to stop, before it is made concrete. Make one with [TrimHorizon], [Latest], [Timestamp] or [Sequences]. The
// zero value means trim horizon as a start, and no stop as a stop. Values are immutable.
type Position struct {
	kind      positionKind
	at        time.Time
	sequences map[string]string
}

type positionKind uint8

const (
	unsetPosition positionKind = iota
	trimHorizonPosition
	latestPosition
	timestampPosition
	sequencesPosition
)

// TrimHorizon is the oldest record that the stream still holds. It is no stop.
func TrimHorizon() Position { return Position{kind: trimHorizonPosition} }

// Latest is the end of the stream at the moment of the first discovery; [Source.LatestBy] says how it is found.
func Latest() Position { return Position{kind: latestPosition} }

// Timestamp is the first record that arrived at t or later, to the millisecond; the oldest one when t is older than what the stream holds. As
// a stop it is the first record that is not read.
func Timestamp(t time.Time) Position { return Position{kind: timestampPosition, at: t} }

// Sequences is the sequence number of the first record that is read, for shards by id. Ancestors of the named shards are not read, descendants
// are read whole. Every other shard must be named. It is no stop. The map is copied.
func Sequences(sequences map[string]string) Position {
	return Position{kind: sequencesPosition, sequences: maps.Clone(sequences)}
}

// IsZero reports that the position was not given.
func (p Position) IsZero() bool { return p.kind == unsetPosition }

// String describes the position completely, in a stable order.
func (p Position) String() string {
	switch p.kind {
	case unsetPosition:
		return "unset"
	case trimHorizonPosition:
		return "trim_horizon"
	case latestPosition:
		return "latest"
	case timestampPosition:
		return "timestamp " + p.at.UTC().Format(time.RFC3339Nano)
	case sequencesPosition:
		var parts []string
		for _, shard := range slices.Sorted(maps.Keys(p.sequences)) {
			parts = append(parts, shard+":"+p.sequences[shard])
		}
		return "sequences " + strings.Join(parts, ",")
	default:
		return "position(?)"
	}
}

func (p Position) validate(field string) (problems []error) {
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(field+": "+format, args...))
	}
	switch p.kind {
	case unsetPosition, latestPosition:
	case trimHorizonPosition:
		if field == "stop" {
			problem("trim_horizon would read nothing: use latest or a timestamp, or leave it out to read for ever")
		}
	case timestampPosition:
		if p.at.UnixMilli() <= 0 {
			problem("timestamp %s is before 1970: give a later time, or trim_horizon", p.at.Format(time.RFC3339))
		}
	case sequencesPosition:
		if field == "stop" {
			problem("sequence numbers are no stop: use latest or a timestamp")
		}
		if len(p.sequences) == 0 {
			problem("sequences is empty: name a sequence number for each shard")
		}
		for _, shard := range slices.Sorted(maps.Keys(p.sequences)) {
			if number := p.sequences[shard]; number == "" || !lineage.Digits(number) {
				problem("shard %s: %q is no sequence number: decimal digits, as the service gives them", shard, number)
			}
		}
	}
	return problems
}

// LatestBy says how the end of the stream is found at the start.
type LatestBy string

const (
	// ByClock takes the service's clock, less a margin of a second: one call for any stream. What arrived up to two seconds before the start may
	// be read too, because the clock comes in whole seconds.
	ByClock LatestBy = "clock"
	// ByScan reads to the end of each shard and begins behind the last record. Nothing that was there is read again; it takes as long as reading
	// the last minutes, and where a shard had no record in those, all that it holds.
	ByScan LatestBy = "scan"
)

// Policy says what happens when data was lost before it was read.
type Policy string

const (
	// Fail ends the job with an error that names the shard and the position.
	Fail Policy = "fail"
	// Continue goes on with what is left, logs it and counts it.
	Continue Policy = "continue"
)
