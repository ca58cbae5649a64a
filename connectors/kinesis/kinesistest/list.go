package kinesistest

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// filter says which shards a list holds.
type filter struct {
	Type      string
	ShardId   string
	Timestamp *moment
}

// wants decides about a shard that is not gone.
func (f filter) wants(st *stream, sh *shard, now time.Time) bool {
	at := now
	switch f.Type {
	case "", "FROM_TRIM_HORIZON":
		return true
	case "AT_LATEST":
		return sh.open()
	case "AFTER_SHARD_ID":
		return sh.id > f.ShardId
	case "AT_TRIM_HORIZON":
		at = st.horizon(now)
	case "AT_TIMESTAMP", "FROM_TIMESTAMP":
		at = f.Timestamp.Time
	}
	reaches := sh.open() || !sh.closed.Before(at)
	return reaches && (f.Type == "FROM_TIMESTAMP" || !sh.created.After(at))
}

func (f filter) check(st *stream, now time.Time) error {
	switch f.Type {
	case "", "FROM_TRIM_HORIZON", "AT_LATEST", "AT_TRIM_HORIZON":
		if f.ShardId != "" || f.Timestamp != nil {
			return fail(invalidArgument, "ShardFilter %s takes neither a ShardId nor a Timestamp", f.Type)
		}
	case "AFTER_SHARD_ID":
		if _, ok := shardNumber(f.ShardId); !ok {
			return fail(invalidArgument, "ShardFilter AFTER_SHARD_ID needs the id of a shard, not %q", clip(f.ShardId))
		}
	case "AT_TIMESTAMP", "FROM_TIMESTAMP":
		switch {
		case f.Timestamp == nil:
			return fail(invalidArgument, "ShardFilter %s needs a Timestamp", f.Type)
		case f.Timestamp.After(now):
			return fail(invalidArgument, "ShardFilter %s: the Timestamp lies in the future", f.Type)
		case f.Type == "AT_TIMESTAMP" && f.Timestamp.Before(st.horizon(now).Truncate(time.Millisecond)):
			return fail(invalidArgument, "ShardFilter AT_TIMESTAMP: the Timestamp lies before the oldest data")
		}
	default:
		return fail(validation, "ShardFilter type %q is not known", clip(f.Type))
	}
	return nil
}

func shardNumber(id string) (uint32, bool) {
	digits, ok := strings.CutPrefix(id, "shardId-")
	if !ok || len(digits) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

type listShards struct {
	streamRef
	ExclusiveStartShardId   string
	MaxResults              *int
	NextToken               *string
	ShardFilter             *filter
	StreamCreationTimestamp *moment

	see  func(*stream, []*shard) []*shard // faults
	turn *int                             // pages to the one that the token leads to, instead of one
}

func (r *listShards) target(s *Server) Target {
	if r.NextToken == nil {
		return Target{Stream: r.name()}
	}
	var at listPlace
	s.sealer.open(listPurpose, *r.NextToken, &at)
	return Target{Stream: at.Stream}
}

// listPlace is what the token of a page says.
type listPlace struct {
	Stream  string
	Created int64  // of the stream, in milliseconds
	After   string // id of the last shard listed
	Filter  filter
	Max     int
	Issued  int64 // in nanoseconds
}

const (
	listPurpose = "list"
	listDefault = 1000
	listMost    = 10_000
)

type listShardsAnswer struct {
	Shards    []wireShard
	NextToken *string `json:",omitempty"`
}

// place is where the list of a first request begins.
func (r *listShards) place(st *stream, now time.Time) (listPlace, error) {
	at := listPlace{Stream: st.name, Created: st.created.UnixMilli(), After: r.ExclusiveStartShardId, Max: listDefault}
	if c := r.StreamCreationTimestamp; c != nil && c.Unix() != st.created.Unix() {
		return at, fail(notFound, "stream %s was not created at %s but at %s", st.name, c.Format(time.RFC3339), st.created.UTC().Format(time.RFC3339))
	}
	if r.ShardFilter != nil {
		at.Filter = *r.ShardFilter
	}
	if err := at.Filter.check(st, now); err != nil {
		return at, err
	}
	if at.After != "" {
		if _, ok := shardNumber(at.After); !ok {
			return at, fail(invalidArgument, "ExclusiveStartShardId %q is not the id of a shard", clip(at.After))
		}
	}
	return at, nil
}

// resume reads the token of a follow-up request, which names nothing else.
func (r *listShards) resume(s *Server) (*stream, listPlace, error) {
	var at listPlace
	switch {
	case r.name() != "" || r.ExclusiveStartShardId != "" || r.StreamCreationTimestamp != nil || r.ShardFilter != nil:
		return nil, at, fail(invalidArgument, "a NextToken goes without the stream's name, a filter, and where to start")
	case !s.sealer.open(listPurpose, *r.NextToken, &at):
		return nil, at, fail(invalidArgument, "NextToken %q is none of this server", clip(*r.NextToken))
	case s.clock.Now().Sub(time.Unix(0, at.Issued)) >= tokenLife:
		return nil, at, fail(expiredToken, "the NextToken was issued more than %s ago", tokenLife)
	}
	st, err := s.stream(streamRef{StreamName: at.Stream})
	if err == nil && st.created.UnixMilli() != at.Created {
		err = fail(notFound, "stream %s was deleted and made anew since the list began", st.name)
	}
	return st, at, err
}

func (r *listShards) serve(s *Server) (any, error) {
	var (
		st  *stream
		at  listPlace
		err error
	)
	now := s.clock.Now()
	if r.NextToken != nil {
		st, at, err = r.resume(s)
	} else if st, err = s.stream(r.streamRef); err == nil {
		at, err = r.place(st, now)
	}
	if err != nil {
		return nil, err
	}
	if r.MaxResults != nil {
		if *r.MaxResults < 1 || *r.MaxResults > listMost {
			return nil, fail(validation, "MaxResults %d: want 1 to %d", *r.MaxResults, listMost)
		}
		at.Max = min(*r.MaxResults, listDefault)
	}
	switch state := st.status(now); {
	case state == creating || state == deleting:
		return nil, fail(resourceInUse, "stream %s is %s", st.name, state)
	case !s.options.Unlimited && !st.lists.admit(now, 0, listCalls, 0):
		return nil, fail(limitExceeded, "stream %s: more than %d ListShards calls within a second", st.name, listCalls)
	}
	seen := st.listed(now)
	if r.see != nil {
		seen = r.see(st, seen)
	}
	seen = slices.DeleteFunc(slices.Clone(seen), func(sh *shard) bool { return sh.id <= at.After || !at.Filter.wants(st, sh, now) })
	answer := &listShardsAnswer{Shards: []wireShard{}}
	for _, sh := range seen[:min(at.Max, len(seen))] {
		answer.Shards = append(answer.Shards, sh.wire())
	}
	if len(seen) > at.Max {
		next := at.Max
		if r.turn != nil {
			next = min(*r.turn*at.Max, len(seen))
		}
		if next > 0 {
			at.After = seen[next-1].id
		}
		at.Issued = now.UnixNano()
		token := s.sealer.seal(listPurpose, at)
		answer.NextToken = &token
	}
	return answer, nil
}
