package kinesis

import (
	"context"
	"sync"
	"time"
)

// shared is what all readers of one stream in this process have in common: the service counts calls by shard, whoever makes them, and memory is
// one for all. It outlives its users for a while, because a reader that is started anew goes on with the same shards.
type shared struct {
	key string

	mu struct {
		sync.Mutex
		users   int
		left    time.Time // when the last user left
		budgets map[string]*budget
		limit   int64
		used    int64
		waiting map[chan struct{}]struct{}
		known   summary
		fresh   time.Time // until when known may be used
	}
	// asking holds one token: who has it asks the service, others wait for the answer.
	asking chan struct{}
}

// streams are the shared parts by stream. Those without users are dropped when others are taken and they have been idle for a minute.
var streams struct {
	sync.Mutex
	byKey map[string]*shared
}

const (
	sharedIdle = time.Minute
	// summaryFresh is how long what the service says of a stream is used for all readers: the call has a limit for the whole account, and
	// hundreds of readers may start at once. It is short, because a stream may be another one by the next start.
	summaryFresh = 5 * time.Second
)

// share takes the shared part of a stream; release gives it back.
func share(key string, limit int64) *shared {
	streams.Lock()
	defer streams.Unlock()
	if streams.byKey == nil {
		streams.byKey = make(map[string]*shared)
	}
	now := time.Now()
	for k, s := range streams.byKey {
		if s.abandoned(now) {
			delete(streams.byKey, k)
		}
	}
	s := streams.byKey[key]
	if s == nil {
		s = &shared{key: key, asking: make(chan struct{}, 1)}
		s.mu.budgets, s.mu.waiting = make(map[string]*budget), make(map[chan struct{}]struct{})
		streams.byKey[key] = s
	}
	s.mu.Lock()
	s.mu.users++
	s.mu.limit = limit
	s.mu.Unlock()
	return s
}

func (s *shared) abandoned(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.users == 0 && now.Sub(s.mu.left) > sharedIdle
}

func (s *shared) release() {
	s.mu.Lock()
	s.mu.users--
	s.mu.left = time.Now()
	s.mu.Unlock()
}

// budget of a shard. Those that have not been used for a while are dropped when the number of them doubles.
func (s *shared) budget(shard string, now time.Time) *budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.mu.budgets[shard]
	if b == nil {
		if n := len(s.mu.budgets); n >= 1024 && n&(n-1) == 0 {
			for id, old := range s.mu.budgets {
				if old.idle(now) {
					delete(s.mu.budgets, id)
				}
			}
		}
		b = &budget{}
		s.mu.budgets[shard] = b
	}
	return b
}

// summary answers what the service says of the stream, asked at most once in a while for all.
func (s *shared) summary(ctx context.Context, ask func(context.Context) (summary, error)) (summary, error) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return summary{}, context.Cause(ctx)
	}
	s.mu.Lock()
	known, fresh := s.mu.known, s.mu.fresh
	s.mu.Unlock()
	if time.Now().Before(fresh) {
		return known, nil
	}
	got, err := ask(ctx)
	if err != nil {
		return summary{}, err
	}
	s.mu.Lock()
	s.mu.known, s.mu.fresh = got, time.Now().Add(summaryFresh)
	s.mu.Unlock()
	return got, nil
}

// forget makes the next summary a new one.
func (s *shared) forget() {
	s.mu.Lock()
	s.mu.fresh = time.Time{}
	s.mu.Unlock()
}

// take reserves bytes for a page that is to be fetched. always admits it whatever the limit: a reader that holds nothing must be able to go
// on, or those that wait for their sinks would stop it. When it answers false, bell rings once there is room.
func (s *shared) take(bytes int64, always bool, bell chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !always && s.mu.used > 0 && s.mu.used+bytes > s.mu.limit {
		s.mu.waiting[bell] = struct{}{}
		return false
	}
	s.mu.used += bytes
	return true
}

// give changes what is reserved: by the difference to what a page turned out to have, and back when it was emitted.
func (s *shared) give(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.used -= bytes
	if bytes <= 0 {
		return
	}
	for bell := range s.mu.waiting {
		ring(bell)
	}
	clear(s.mu.waiting)
}

// leave takes a bell out.
func (s *shared) leave(bell chan struct{}) {
	s.mu.Lock()
	delete(s.mu.waiting, bell)
	s.mu.Unlock()
}

func (s *shared) inFlight() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.used
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
