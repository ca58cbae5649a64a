package telemetry

import (
	"math"
	"sync/atomic"
	"time"
)

// Counter only grows. The zero value is ready; any goroutine may use it.
type Counter struct{ n atomic.Uint64 }

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value is the count so far, including that of earlier attempts.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Level is a whole number that goes up and down and is always known: a queue's length, a watermark. The zero value is
// ready; any goroutine may use it.
type Level struct{ n atomic.Int64 }

// Set replaces the level.
func (l *Level) Set(n int64) { l.n.Store(n) }

// Add changes the level by n, which may be negative.
func (l *Level) Add(n int64) { l.n.Add(n) }

// Value is the present level.
func (l *Level) Value() int64 { return l.n.Load() }

// Moment is when something began that may still be going on: a turn, the oldest command's wait. It is shown as an age and
// is absent unless set. The zero value is absent; any goroutine may use it.
type Moment struct{ nanos atomic.Int64 }

// Set says that it began at t. The zero time clears.
func (m *Moment) Set(t time.Time) {
	if t.IsZero() {
		m.nanos.Store(0)
		return
	}
	m.nanos.Store(t.UnixNano())
}

// Clear makes it absent.
func (m *Moment) Clear() { m.nanos.Store(0) }

// Age is how long ago it began, never negative; ok is false when it is absent.
func (m *Moment) Age(now time.Time) (age time.Duration, ok bool) {
	began := m.nanos.Load()
	if began == 0 {
		return 0, false
	}
	return max(time.Duration(now.UnixNano()-began), 0), true
}

// Stopwatch adds up the time spent in a condition, including the spell that is going on while somebody looks: a loop that
// is blocked for good is seen to be. One goroutine starts and stops it, any may read. The zero value is stopped at zero.
//
// One word holds both states, so that a reader never sees half a change: the total while stopped, and the total less the
// start time, which is negative for any date after 1970, while running.
type Stopwatch struct{ word atomic.Int64 }

// Start begins a spell. Starting a running stopwatch does nothing.
func (s *Stopwatch) Start(now time.Time) {
	if w := s.word.Load(); w >= 0 {
		s.word.Store(w - now.UnixNano())
	}
}

// Stop ends the spell. Stopping a stopped one does nothing.
func (s *Stopwatch) Stop(now time.Time) {
	if w := s.word.Load(); w < 0 {
		s.word.Store(max(w+now.UnixNano(), 0))
	}
}

// Running reports whether a spell is going on.
func (s *Stopwatch) Running() bool { return s.word.Load() < 0 }

// Total is the time of all spells.
func (s *Stopwatch) Total(now time.Time) time.Duration {
	w := s.word.Load()
	if w < 0 {
		w = max(w+now.UnixNano(), 0)
	}
	return time.Duration(w)
}

// Value is a number that may be unknown. The zero value is unknown; any goroutine may use it.
type Value struct{ bits atomic.Uint64 }

// offset keeps the zero word for "unknown": it is flipped into every stored number. The pattern is that of a NaN with a
// payload of its own, so no number that Set accepts is stored as zero.
const offset uint64 = 0x7ff8_7065_6e73_746f

// Set replaces the value. NaN makes it unknown.
func (v *Value) Set(f float64) {
	if math.IsNaN(f) {
		v.bits.Store(0)
		return
	}
	v.bits.Store(math.Float64bits(f) ^ offset)
}

// Unset makes the value unknown.
func (v *Value) Unset() { v.bits.Store(0) }

// Get is the value; ok is false when it is unknown.
func (v *Value) Get() (f float64, ok bool) {
	w := v.bits.Load()
	if w == 0 {
		return 0, false
	}
	return math.Float64frombits(w ^ offset), true
}
