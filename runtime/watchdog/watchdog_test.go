package watchdog

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// subject notes what was done to it.
type subject struct {
	clock        Clock
	hard, cancel time.Duration
	mu           sync.Mutex
	done         []string
}

func (s *subject) Clock() *Clock                        { return &s.clock }
func (s *subject) Limits() (hard, cancel time.Duration) { return s.hard, s.cancel }
func (s *subject) Wake(took time.Duration)              { s.note("wake %s", took) }
func (s *subject) Abandon(c Call, took time.Duration)   { s.note("abandon in %s %s", c, took) }

func (s *subject) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

func (s *subject) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.done, ", ")
}

var start = time.Unix(1000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

func watched(s *subject) *Watchdog {
	w := New(time.Second, time.Now)
	w.Add(s)
	return w
}

func TestTurnIsWokenOnceAndThenAbandoned(t *testing.T) {
	t.Parallel()
	s := &subject{hard: time.Second, cancel: 30 * time.Second}
	w := watched(s)
	s.clock.Begin(Poll, start)
	for d := time.Duration(0); d <= 60*time.Second; d += 250 * time.Millisecond {
		w.Look(at(d))
	}
	if got := s.all(); got != "wake 1s, abandon in Poll 30s" {
		t.Errorf("done: %s", got)
	}
}

func TestNothingIsDoneWithinTheLimits(t *testing.T) {
	t.Parallel()
	s := &subject{hard: time.Second, cancel: 30 * time.Second}
	w := watched(s)
	w.Look(at(time.Hour)) // no call runs at all
	s.clock.Begin(Poll, start)
	w.Look(at(time.Second - 1))
	s.clock.End()
	w.Look(at(time.Hour))
	if got := s.all(); got != "" {
		t.Errorf("done: %s", got)
	}
}

// Each slow turn is woken, not only the first of an attempt: the memory belongs to the call.
func TestEachSlowTurnIsWoken(t *testing.T) {
	t.Parallel()
	s := &subject{hard: time.Second, cancel: 30 * time.Second}
	w := watched(s)
	for turn := range 3 {
		from := at(time.Duration(turn) * 10 * time.Second)
		s.clock.Begin(Poll, from)
		w.Look(from.Add(2 * time.Second))
		w.Look(from.Add(3 * time.Second))
		s.clock.End()
		w.Look(from.Add(5 * time.Second))
	}
	if got := s.all(); got != "wake 2s, wake 2s, wake 2s" {
		t.Errorf("done: %s", got)
	}
}

// Many short turns add up to no violation, however long the watchdog looks.
func TestShortTurnsAreNoLongOne(t *testing.T) {
	t.Parallel()
	s := &subject{hard: time.Second, cancel: 2 * time.Second}
	w := watched(s)
	for d := time.Duration(0); d < time.Minute; d += 100 * time.Millisecond {
		s.clock.Begin(Poll, at(d))
		w.Look(at(d + 50*time.Millisecond))
	}
	if got := s.all(); got != "" {
		t.Errorf("done: %s", got)
	}
}

// Controls and Close have no hard limit, which only a wakeup could serve; they are abandoned.
func TestOnlyTurnsAreWoken(t *testing.T) {
	t.Parallel()
	for _, c := range []Call{Control, Close} {
		s := &subject{hard: time.Second, cancel: 30 * time.Second}
		w := watched(s)
		s.clock.Begin(c, start)
		w.Look(at(10 * time.Second))
		w.Look(at(31 * time.Second))
		if got := s.all(); got != fmt.Sprintf("abandon in %s 31s", c) {
			t.Errorf("%s: %s", c, got)
		}
	}
}

func TestHardLimitZeroMeansNever(t *testing.T) {
	t.Parallel()
	s := &subject{cancel: 30 * time.Second}
	w := watched(s)
	s.clock.Begin(Poll, start)
	w.Look(at(29 * time.Second))
	if got := s.all(); got != "" {
		t.Errorf("done: %s", got)
	}
}

func TestRemovedSubjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	s, other := &subject{hard: 1, cancel: time.Second}, &subject{hard: 1, cancel: time.Second}
	w := watched(s)
	w.Add(other)
	s.clock.Begin(Poll, start)
	other.clock.Begin(Close, start)
	w.Remove(s)
	w.Remove(s)
	w.Look(at(time.Minute))
	if got := s.all() + other.all(); got != "abandon in Close 1m0s" {
		t.Errorf("done: %s", got)
	}
	if n := len(w.mu.subjects); n != 0 {
		t.Errorf("%d subjects are kept", n)
	}
}

// Waking runs connector code, which may end the subject: the watchdog's lock is not held then.
func TestSubjectMayRemoveItselfWhileItIsWoken(t *testing.T) {
	t.Parallel()
	r := &selfRemoving{}
	r.hard, r.cancel = time.Second, 30*time.Second
	r.w = New(time.Second, time.Now)
	r.w.Add(r)
	r.clock.Begin(Poll, start)
	r.w.Look(at(2 * time.Second))
	r.w.Look(at(time.Hour))
	if got := r.all(); got != "wake 2s" {
		t.Errorf("done: %s", got)
	}
}

type selfRemoving struct {
	subject
	w *Watchdog
}

func (r *selfRemoving) Wake(took time.Duration) {
	r.subject.Wake(took)
	r.w.Remove(r)
}

func TestRunLooksUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := New(250*time.Millisecond, time.Now)
		s := &subject{hard: time.Second, cancel: 30 * time.Second}
		w.Add(s)
		var wg sync.WaitGroup
		wg.Go(func() { w.Run(ctx) })
		s.clock.Begin(Poll, time.Now())
		<-time.After(31 * time.Second)
		synctest.Wait()
		if got := s.all(); got != "wake 1s, abandon in Poll 30s" {
			t.Errorf("done: %s", got)
		}
		cancel()
		wg.Wait()
	})
}

// A loop that begins and ends calls while the watchdog looks: the race detector has the say.
func TestClockIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	s := &subject{hard: time.Hour, cancel: time.Hour}
	w := watched(s)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 10_000 {
			s.clock.Begin(Poll, time.Now())
			s.clock.End()
		}
	})
	wg.Go(func() {
		for range 1000 {
			w.Look(time.Now())
			w.Add(&subject{cancel: time.Hour})
		}
	})
	wg.Wait()
	if got := s.all(); got != "" {
		t.Errorf("done: %s", got)
	}
}

func TestCallNames(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(None, Poll, Control, Close); got != "no call Poll a control Close" {
		t.Errorf("names are %s", got)
	}
}

func BenchmarkBeginEnd(b *testing.B) {
	var c Clock
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		c.Begin(Poll, now)
		c.End()
	}
}
