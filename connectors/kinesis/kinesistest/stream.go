package kinesistest

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Region and Account are those of every ARN.
const (
	Region  = "us-east-1"
	Account = "123456789012"
)

const (
	streamARN = "arn:aws:kinesis:" + Region + ":" + Account + ":stream/"
)

// status of a stream or consumer.
type status string

const (
	creating status = "CREATING"
	active   status = "ACTIVE"
	updating status = "UPDATING"
	deleting status = "DELETING"
)

const (
	provisioned = "PROVISIONED"
	onDemand    = "ON_DEMAND"
	// onDemandShards is what a stream begins with that scales itself.
	onDemandShards = 4

	shortestRetention = 24 * time.Hour
	longestRetention  = 8760 * time.Hour
)

// stream is one with its shards, oldest first. The server's lock guards it.
type stream struct {
	name      string
	created   time.Time
	mode      string
	retention time.Duration
	maxRecord int // bytes
	shards    []*shard
	byID      map[string]*shard
	numbered  uint32      // shards so far
	written   uint64      // last index, see sequence
	consumers []*consumer // oldest first
	state     status      // until changing has passed, afterwards it is active, or the stream is gone
	until     time.Time   // when the change is over

	lists, describes, registrations rate
}

func (st *stream) arn() string { return streamARN + st.name }

func (st *stream) status(now time.Time) status {
	if now.Before(st.until) {
		return st.state
	}
	return active
}

// change puts the stream into a state for a time.
func (st *stream) change(state status, now time.Time, lasts time.Duration) {
	st.state, st.until = state, now.Add(lasts)
}

// horizon is the time of the oldest record that may still be there.
func (st *stream) horizon(now time.Time) time.Time {
	if kept := now.Add(-st.retention); kept.After(st.created) {
		return kept
	}
	return st.created
}

// listed are the shards that are not gone, oldest first.
func (st *stream) listed(now time.Time) []*shard {
	if slices.ContainsFunc(st.shards, func(sh *shard) bool { return sh.gone(now, st.retention) }) {
		st.shards = slices.DeleteFunc(slices.Clone(st.shards), func(sh *shard) bool {
			if !sh.gone(now, st.retention) {
				return false
			}
			delete(st.byID, sh.id)
			return true
		})
	}
	return st.shards
}

func (st *stream) openShards() []*shard {
	var open []*shard
	for _, sh := range st.shards {
		if sh.open() {
			open = append(open, sh)
		}
	}
	slices.SortFunc(open, func(a, b *shard) int { return a.keys.start.compare(b.keys.start) })
	return open
}

// shard finds one that is not gone.
func (st *stream) shard(id string, now time.Time) (*shard, error) {
	sh := st.byID[id]
	if sh == nil || sh.gone(now, st.retention) {
		return nil, fail(notFound, "shard %s of stream %s is not there, or its data has expired", clip(id), st.name)
	}
	return sh, nil
}

// owner is the open shard of a hash key. The open shards cover the ring.
func (st *stream) owner(k hashKey) *shard {
	for _, sh := range slices.Backward(st.shards) { // open ones are mostly the newest
		if sh.open() && sh.keys.contains(k) {
			return sh
		}
	}
	return nil
}

// streamRef is how a request names a stream.
type streamRef struct {
	StreamName string
	StreamARN  string
}

func (n streamRef) name() string {
	if n.StreamName != "" {
		return n.StreamName
	}
	return nameOfARN(n.StreamARN)
}

// nameOfARN is the stream of the ARN of a stream or consumer, empty when there is none.
func nameOfARN(arn string) string {
	_, name, _ := strings.Cut(arn, ":stream/")
	name, _, _ = strings.Cut(name, "/")
	return name
}

func (n streamRef) target(*Server) Target { return Target{Stream: n.name()} }

// stream finds the one that a request names.
func (s *Server) stream(n streamRef) (*stream, error) {
	switch fromARN := nameOfARN(n.StreamARN); {
	case n.StreamName == "" && n.StreamARN == "":
		return nil, fail(invalidArgument, "neither StreamName nor StreamARN is given")
	case n.StreamARN != "" && fromARN == "":
		return nil, fail(validation, "StreamARN %q is not the ARN of a stream", clip(n.StreamARN))
	case n.StreamName != "" && fromARN != "" && n.StreamName != fromARN:
		return nil, fail(invalidArgument, "StreamName %q and StreamARN %q name different streams", clip(n.StreamName), clip(n.StreamARN))
	}
	st := s.mu.streams[n.name()]
	if st == nil {
		return nil, fail(notFound, "stream %s in account %s is not there", clip(n.name()), Account)
	}
	return st, nil
}

// settled is [Server.stream] for a request that wants no change under way.
func (s *Server) settled(n streamRef) (*stream, error) {
	st, err := s.stream(n)
	if err != nil {
		return nil, err
	}
	if now := s.clock.Now(); st.status(now) != active {
		return nil, fail(resourceInUse, "stream %s is %s, not ACTIVE", st.name, st.status(now))
	}
	return st, nil
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

type createStream struct {
	StreamName        string
	ShardCount        *int
	StreamModeDetails *wireMode
}

func (r *createStream) target(*Server) Target { return Target{Stream: r.StreamName} }

func (r *createStream) serve(s *Server) (any, error) {
	mode, count := provisioned, onDemandShards
	if r.StreamModeDetails != nil {
		mode = r.StreamModeDetails.StreamMode
	}
	switch {
	case !validName.MatchString(r.StreamName):
		return nil, fail(validation, "StreamName %q: want 1 to 128 letters, digits, underscores, dots and hyphens", clip(r.StreamName))
	case mode == onDemand && r.ShardCount != nil:
		return nil, fail(validation, "ShardCount is not given with StreamMode ON_DEMAND")
	case mode == onDemand:
	case mode != provisioned:
		return nil, fail(validation, "StreamMode %q: want PROVISIONED or ON_DEMAND", clip(mode))
	case r.ShardCount == nil:
		return nil, fail(validation, "ShardCount is missing: a provisioned stream needs one")
	default:
		count = *r.ShardCount
	}
	if count < 1 || count > maxStreamShards {
		return nil, fail(validation, "ShardCount %d: want 1 to %d", count, maxStreamShards)
	}
	if s.mu.streams[r.StreamName] != nil {
		return nil, fail(resourceInUse, "stream %s is already there", r.StreamName)
	}
	now := s.clock.Now()
	st := &stream{
		name: r.StreamName, created: now.Truncate(time.Millisecond), mode: mode, retention: shortestRetention, maxRecord: recordBytes,
		byID: make(map[string]*shard),
	}
	// A stream of the same name that was there before in the same second had the same sequence numbers without this.
	s.mu.created = max(s.mu.created+1, seconds(now))
	for _, keys := range evenRanges(count) {
		st.add(now, s.mu.created, keys)
	}
	st.change(creating, now, s.options.ControlTime)
	s.mu.streams[r.StreamName] = st
	return nil, nil
}

// add opens a shard whose sequence numbers begin with the given second, or a later one that is above those of its parents.
func (st *stream) add(now time.Time, second int64, keys hashRange, parents ...*shard) *shard {
	for _, p := range parents {
		second = max(second, p.seconds+1)
	}
	sh := &shard{id: shardID(st.numbered), number: st.numbered, keys: keys, parents: parents, created: now.Truncate(time.Millisecond), seconds: second, grown: make(chan struct{})}
	st.numbered++
	for _, p := range parents {
		p.children = append(p.children, sh)
	}
	st.shards = append(st.shards, sh)
	st.byID[sh.id] = sh
	return sh
}

type deleteStream struct {
	streamRef
	EnforceConsumerDeletion bool
}

func (r *deleteStream) serve(s *Server) (any, error) {
	st, err := s.stream(r.streamRef)
	if err != nil {
		return nil, err
	}
	if len(st.consumers) > 0 && !r.EnforceConsumerDeletion {
		return nil, fail(resourceInUse, "stream %s has %d consumers: deregister them, or delete with EnforceConsumerDeletion", st.name, len(st.consumers))
	}
	delete(s.mu.streams, st.name)
	for _, sh := range st.shards {
		s.mu.held -= sh.forget(len(sh.records))
		sh.wake() // subscriptions
	}
	return nil, nil
}

type changeRetention struct {
	streamRef
	RetentionPeriodHours int
	longer               bool
}

func (r *changeRetention) serve(s *Server) (any, error) {
	st, err := s.settled(r.streamRef)
	if err != nil {
		return nil, err
	}
	keep := time.Duration(min(max(r.RetentionPeriodHours, 0), 1<<20)) * time.Hour
	switch {
	case keep < shortestRetention || keep > longestRetention:
		return nil, fail(invalidArgument, "RetentionPeriodHours %d: want 24 to 8760", r.RetentionPeriodHours)
	case r.longer && keep < st.retention, !r.longer && keep > st.retention:
		return nil, fail(invalidArgument, "RetentionPeriodHours %d: the present period of %s is %s", r.RetentionPeriodHours, st.retention, map[bool]string{true: "longer", false: "shorter"}[r.longer])
	}
	st.retention = keep
	return nil, nil
}
