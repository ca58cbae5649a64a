package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// resolver turns symbolic positions into offsets, once per split.
type resolver struct {
	cluster   cluster
	isolation Isolation
}

// splits returns a split for each place, with ids by topic name.
func (r resolver) splits(ctx context.Context, places []place, ids map[string][16]byte, start, stop Position) ([]Split, error) {
	if err := errors.Join(r.complete("start", start, places), r.complete("stop", stop, places)); err != nil {
		return nil, sdk.Fatal(fmt.Errorf("kafka: %w", err))
	}
	from, err := r.resolve(ctx, "start", start, places)
	if err != nil {
		return nil, err
	}
	until, err := r.resolve(ctx, "stop", stop, places)
	if err != nil {
		return nil, err
	}
	splits := make([]Split, 0, len(places))
	for _, p := range places {
		s := Split{
			Topic: p.topic, TopicID: ids[p.topic], Partition: p.partition,
			Offset: from[p].offset, Epoch: max(from[p].epoch, NoEpoch), Start: from[p].offset, Stop: NoStop,
		}
		if at, ok := until[p]; ok {
			s.Stop = at.offset
		}
		splits = append(splits, s)
	}
	return splits, nil
}

// resolve returns an offset for each place, or nothing for a position that was not given.
func (r resolver) resolve(ctx context.Context, field string, at Position, places []place) (map[place]listed, error) {
	switch at.kind {
	case unsetPosition:
		return nil, nil
	case earliestPosition:
		return r.cluster.offsets(ctx, places, askEarliest, r.isolation)
	case latestPosition:
		return r.cluster.offsets(ctx, places, askLatest, r.isolation)
	case timestampPosition:
		return r.byTime(ctx, at.millis(), places)
	case offsetsPosition:
		return r.given(ctx, field, at, places)
	case committedPosition:
		return r.committed(ctx, field, at, places)
	default:
		return nil, sdk.Fatalf("kafka: %s: unknown position %s", field, at)
	}
}

// byTime falls back to the end for partitions without a record that young. The end is asked for first: a record that
// arrives between the two answers is then read, not skipped.
func (r resolver) byTime(ctx context.Context, millis int64, places []place) (map[place]listed, error) {
	ends, err := r.cluster.offsets(ctx, places, askLatest, r.isolation)
	if err != nil {
		return nil, err
	}
	found, err := r.cluster.offsets(ctx, places, millis, r.isolation)
	if err != nil {
		return nil, err
	}
	for p, at := range found {
		if at.offset < 0 || at.offset > ends[p].offset {
			found[p] = ends[p]
		}
	}
	return found, nil
}

// given checks offsets from the configuration against the log as it is now, uncommitted records included.
func (r resolver) given(ctx context.Context, field string, at Position, places []place) (map[place]listed, error) {
	first, err := r.cluster.offsets(ctx, places, askEarliest, r.isolation)
	if err != nil {
		return nil, err
	}
	last, err := r.cluster.offsets(ctx, places, askLatest, ReadUncommitted)
	if err != nil {
		return nil, err
	}
	var problems []error
	chosen := make(map[place]listed, len(places))
	for _, p := range places {
		offset := at.offsets[p.topic][p.partition]
		if low, high := first[p].offset, last[p].offset; offset < low || offset > high {
			problems = append(problems, fmt.Errorf("%s: topic %q partition %d: %w: %d was given, the log holds %d to %d: give an offset in that range",
				field, p.topic, p.partition, ErrOffsetOutOfRange, offset, low, high))
		}
		chosen[p] = listed{offset, NoEpoch}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, sdk.Fatal(err)
	}
	return chosen, nil
}

// committed asks where a group stands. An offset that the log does not hold is left as it is: the reader finds it as it finds a saved
// one that is lost, and does with it what the policy says.
func (r resolver) committed(ctx context.Context, field string, at Position, places []place) (map[place]listed, error) {
	chosen, err := r.cluster.committed(ctx, at.group, places)
	if err != nil {
		return nil, err
	}
	var without []place
	for _, p := range places {
		if _, ok := chosen[p]; !ok {
			without = append(without, p)
		}
	}
	if len(without) == 0 {
		return chosen, nil
	}
	if at.otherwise == unsetPosition {
		return nil, sdk.Fatal(fmt.Errorf("kafka: %s: %w: group %q has none for %d of %d partitions, such as %s: set a fallback (earliest or latest), or another group",
			field, ErrNotCommitted, at.group, len(without), len(places), without[0]))
	}
	rest, err := r.resolve(ctx, field, Position{kind: at.otherwise}, without)
	if err != nil {
		return nil, err
	}
	maps.Copy(chosen, rest)
	return chosen, nil
}

// complete checks that offsets from the configuration name each partition that exists and no other.
func (r resolver) complete(field string, at Position, places []place) error {
	if at.kind != offsetsPosition {
		return nil
	}
	open := make(map[place]bool)
	for topic, partitions := range at.offsets {
		for partition := range partitions {
			open[place{topic, partition}] = true
		}
	}
	var unnamed []string
	for _, p := range places {
		if !open[p] {
			unnamed = append(unnamed, p.String())
		}
		delete(open, p)
	}
	var problems []error
	if len(unnamed) > 0 {
		problems = append(problems, fmt.Errorf("%s: no offset is given for %s: name every partition", field, strings.Join(unnamed, ", ")))
	}
	for _, p := range slices.SortedFunc(maps.Keys(open), comparePlaces) {
		problems = append(problems, fmt.Errorf("%s: %w: an offset is given for %s: remove it", field, ErrTopicMissing, p))
	}
	return errors.Join(problems...)
}
