package kafka

import (
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// reportEvery is how many busy turns share one report of the lag.
const reportEvery = 64

// lag knows how far a reader is behind. The fetcher says which splits there are and where their logs end, the reader loop how far it
// emitted; the lock is held for a few additions. Sums are kept, so a report costs the same for any number of splits.
type lag struct {
	pending sdk.Gauge
	seconds sdk.Gauge
	turns   uint // reader loop only

	mu struct {
		sync.Mutex
		splits map[sdk.SplitID]*progress
		known  int   // splits whose end is known
		left   int64 // records left in those
		newest time.Time
	}
}

// progress is one split: the emitted position, and the end to which its records count as pending, negative when unknown.
type progress struct {
	position int64
	end      int64
}

func newLag(m sdk.Metrics) *lag {
	l := &lag{
		pending: m.Gauge(sdk.GaugePendingRecords, "records", "Records between the emitted position and the known end, over the splits whose end is known."),
		seconds: m.Gauge(sdk.GaugeLagSeconds, "s", "Age of the newest emitted record when it was emitted."),
	}
	l.mu.splits = make(map[sdk.SplitID]*progress)
	return l
}

func (p *progress) left() int64 {
	if p.end < 0 {
		return 0
	}
	return max(p.end-p.position, 0)
}

// track begins with a split. What is left to a stop is known at once; the end of a log is not.
func (l *lag) track(s Split) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked(s.SplitID())
	l.mu.splits[s.SplitID()] = &progress{position: s.Offset, end: -1}
	l.learnLocked(s.SplitID(), s.Stop)
}

func (l *lag) forget(id sdk.SplitID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked(id)
}

func (l *lag) forgetLocked(id sdk.SplitID) {
	p, ok := l.mu.splits[id]
	if !ok {
		return
	}
	if p.end >= 0 {
		l.mu.known--
		l.mu.left -= p.left()
	}
	delete(l.mu.splits, id)
}

// learn takes the end of a split's log. A negative one is no news.
func (l *lag) learn(id sdk.SplitID, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.learnLocked(id, end)
}

func (l *lag) learnLocked(id sdk.SplitID, end int64) {
	p, ok := l.mu.splits[id]
	if !ok || end < 0 {
		return
	}
	if p.end < 0 {
		l.mu.known++
	}
	l.mu.left -= p.left()
	p.end = end
	l.mu.left += p.left()
}

// advance takes the position after the last emitted record and that record's time.
func (l *lag) advance(id sdk.SplitID, position int64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.mu.newest) {
		l.mu.newest = at
	}
	p, ok := l.mu.splits[id]
	if !ok {
		return
	}
	l.mu.left -= p.left()
	p.position = position
	l.mu.left += p.left()
}

// report sets the gauges after a turn: always when the reader goes idle, so that the last value is the right one, and else now and
// then. It runs on the reader loop.
func (l *lag) report(status sdk.PollStatus) {
	l.turns++
	if status == sdk.MoreAvailable && l.turns%reportEvery != 0 {
		return
	}
	l.mu.Lock()
	known, left, newest := l.mu.known, l.mu.left, l.mu.newest
	l.mu.newest = time.Time{}
	l.mu.Unlock()
	if known == 0 {
		l.pending.Unset()
	} else {
		l.pending.Set(float64(left))
	}
	if !newest.IsZero() {
		l.seconds.Set(max(time.Since(newest).Seconds(), 0))
	}
}
