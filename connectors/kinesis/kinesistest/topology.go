package kinesistest

import (
	"slices"
	"time"
)

// close ends shards for writers. Their numbers end above all records.
func (st *stream) close(now time.Time, parents ...*shard) {
	for _, sh := range parents {
		sh.closed, sh.ending = now, sh.sequence(endIndex, now)
		sh.wake()
	}
}

// split divides an open shard at a key that is in it and not its first.
func (st *stream) split(now time.Time, sh *shard, at hashKey) (lower, upper *shard) {
	st.close(now, sh)
	second := seconds(now)
	lower = st.add(now, second, hashRange{sh.keys.start, at.before()}, sh)
	upper = st.add(now, second, hashRange{at, sh.keys.end}, sh)
	return lower, upper
}

// merge joins two open shards, the second adjoining the first.
func (st *stream) merge(now time.Time, parents ...*shard) *shard {
	st.close(now, parents...)
	return st.add(now, seconds(now), hashRange{parents[0].keys.start, parents[1].keys.end}, parents...)
}

// scale splits and merges until there are n open shards of the same size. Shards that cross the border of one to be are split there, then
// what lies within one is merged, so that a change by a factor of two is one generation and another one several.
func (st *stream) scale(now time.Time, n int) {
	wanted := evenRanges(n)
	for _, r := range wanted[1:] {
		if sh := st.owner(r.start); sh.keys.start != r.start {
			st.split(now, sh, r.start)
		}
	}
	for _, r := range wanted {
		for {
			parts := slices.DeleteFunc(st.openShards(), func(sh *shard) bool { return !sh.keys.within(r) })
			if len(parts) < 2 {
				break
			}
			st.merge(now, parts[0], parts[1])
		}
	}
}

type splitShard struct {
	streamRef
	ShardToSplit       string
	NewStartingHashKey string
}

func (r *splitShard) target(*Server) Target { return Target{Stream: r.name(), Shard: r.ShardToSplit} }

// writers finds open shards of a stream that is not being changed.
func (s *Server) writers(n streamRef, ids ...string) (*stream, []*shard, error) {
	st, err := s.settled(n)
	if err != nil {
		return nil, nil, err
	}
	now := s.clock.Now()
	var found []*shard
	for _, id := range ids {
		sh, err := st.shard(id, now)
		if err != nil {
			return nil, nil, err
		}
		if !sh.open() {
			return nil, nil, fail(invalidArgument, "shard %s of stream %s is closed", sh.id, st.name)
		}
		found = append(found, sh)
	}
	return st, found, nil
}

func (r *splitShard) serve(s *Server) (any, error) {
	st, found, err := s.writers(r.streamRef, r.ShardToSplit)
	if err != nil {
		return nil, err
	}
	at, err := parseHash(r.NewStartingHashKey)
	if err != nil {
		return nil, err
	}
	if keys := found[0].keys; !keys.contains(at) || at == keys.start {
		return nil, fail(invalidArgument, "NewStartingHashKey %s: want one above %s and up to %s", at, keys.start, keys.end)
	}
	now := s.clock.Now()
	st.split(now, found[0], at)
	st.change(updating, now, s.options.ControlTime)
	return nil, nil
}

type mergeShards struct {
	streamRef
	ShardToMerge         string
	AdjacentShardToMerge string
}

func (r *mergeShards) target(*Server) Target { return Target{Stream: r.name(), Shard: r.ShardToMerge} }

func (r *mergeShards) serve(s *Server) (any, error) {
	st, found, err := s.writers(r.streamRef, r.ShardToMerge, r.AdjacentShardToMerge)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	switch {
	case found[0].keys.adjoins(found[1].keys):
		st.merge(now, found[0], found[1])
	case found[1].keys.adjoins(found[0].keys):
		st.merge(now, found[1], found[0])
	default:
		return nil, fail(invalidArgument, "shards %s and %s are not adjacent", found[0].id, found[1].id)
	}
	st.change(updating, now, s.options.ControlTime)
	return nil, nil
}

type updateShardCount struct {
	streamRef
	TargetShardCount int
	ScalingType      string
}

type updateShardCountAnswer struct {
	StreamName        string
	StreamARN         string
	CurrentShardCount int
	TargetShardCount  int
}

func (r *updateShardCount) serve(s *Server) (any, error) {
	st, err := s.settled(r.streamRef)
	if err != nil {
		return nil, err
	}
	count := len(st.openShards())
	switch {
	case r.ScalingType != "UNIFORM_SCALING":
		return nil, fail(validation, "ScalingType %q: want UNIFORM_SCALING", clip(r.ScalingType))
	case r.TargetShardCount < 1 || r.TargetShardCount > maxStreamShards:
		return nil, fail(validation, "TargetShardCount %d: want 1 to %d", r.TargetShardCount, maxStreamShards)
	case st.mode == onDemand:
		return nil, fail(validation, "stream %s is ON_DEMAND: it scales itself", st.name)
	case r.TargetShardCount > 2*count || 2*r.TargetShardCount < count:
		return nil, fail(limitExceeded, "TargetShardCount %d: from %d one step goes to half or double at most", r.TargetShardCount, count)
	}
	now := s.clock.Now()
	st.scale(now, r.TargetShardCount)
	st.change(updating, now, s.options.ControlTime)
	return updateShardCountAnswer{st.name, st.arn(), count, r.TargetShardCount}, nil
}
