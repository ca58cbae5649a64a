package kinesis

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// shard is a split on the fetcher's side: the place that is fetched next, which runs ahead of what the loop has emitted.
type shard struct {
	Split
	id       sdk.SplitID
	budget   *budget
	iterator string // for Position; empty: to be asked for
	due      time.Time
	slot     int // in the queue, -1 when it is not there
	paused   bool
	busy     bool   // a call runs
	gone     bool   // removed, or finished
	life     uint64 // of the follower, 0 while there is none

	confirmed bool  // the stream is the one that was meant, and the place is within what it holds
	expect    int64 // bytes that the next page is taken to have
	behind    int64 // milliseconds, -1 while unknown
	told      time.Time
	failures  int // calls in a row
	expiries  int // iterators in a row
	stuck     int // empty pages in a row from before what the stream holds
}

// Bounds of what a page is taken to have before it is known.
const (
	leastPage = 64 << 10
	firstPage = 1 << 20
	mostPage  = 10 << 20
)

// learn takes the size of a page for the next one.
func (s *shard) learn(bytes int64) { s.expect = min(max(bytes+bytes/2, leastPage), mostPage) }

// Pauses between calls that fail.
const (
	minPause = 200 * time.Millisecond
	maxPause = 10 * time.Second
)

// pause is how long to wait after that many failures in a row, with a little chance in it: shards that failed together do not come back
// together.
func pause(failures int) time.Duration {
	d := minPause << min(max(failures-1, 0), 10)
	return jitter(min(d, maxPause))
}

func jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// queue holds the shards that wait for a call, the earliest first.
type queue []*shard

var _ heap.Interface = (*queue)(nil)

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].slot, q[j].slot = i, j
}

// Push implements [heap.Interface].
func (q *queue) Push(x any) {
	s := x.(*shard)
	s.slot = len(*q)
	*q = append(*q, s)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	s.slot = -1
	return s
}

// at puts s where it is due then, if it may be called at all.
func (q *queue) at(s *shard, due time.Time) {
	s.due = due
	switch {
	case s.paused || s.busy || s.gone:
		q.out(s)
	case s.slot >= 0:
		heap.Fix(q, s.slot)
	default:
		heap.Push(q, s)
	}
}

func (q *queue) out(s *shard) {
	if s.slot >= 0 {
		heap.Remove(q, s.slot)
	}
}
