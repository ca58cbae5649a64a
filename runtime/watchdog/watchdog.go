package watchdog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Call is what kind of connector code a loop is in.
type Call uint8

// Calls.
const (
	None Call = iota
	Poll
	Control
	Close
)

func (c Call) String() string { return [...]string{"no call", "Poll", "a control", "Close"}[c] }

// Clock says which call runs and since when. Its loop writes, the watchdog reads. The zero value says that none runs.
type Clock struct {
	// state is the start in nanoseconds since 1970 with the call in the two low bits: one word, so that both are seen together.
	state atomic.Int64
}

// Begin notes the start of a call.
func (c *Clock) Begin(call Call, now time.Time) { c.state.Store(now.UnixNano()&^3 | int64(call)) }

// End notes its return.
func (c *Clock) End() { c.state.Store(0) }

func (c *Clock) running() (call Call, since time.Time, id int64) {
	s := c.state.Load()
	return Call(s & 3), time.Unix(0, s&^3), s
}

// Subject is a loop under watch. Its methods are called on the watchdog's goroutine and must not block.
type Subject interface {
	Clock() *Clock
	// Limits are the time after which a turn is woken, 0 for never, and after which any call is given up.
	Limits() (hard, cancel time.Duration)
	// Wake is called once per call of Poll that passed the hard limit.
	Wake(took time.Duration)
	// Abandon is called once; the subject is then forgotten.
	Abandon(call Call, took time.Duration)
}

// Watchdog watches any number of subjects.
type Watchdog struct {
	every time.Duration
	now   func() time.Time
	mu    struct {
		sync.Mutex
		subjects map[Subject]*memory
	}
}

// memory is what was already done about a call. Only the watchdog's goroutine changes it.
type memory struct {
	call  int64
	woken bool
}

// New returns a watchdog that looks every so often: a quarter of the smallest limit is plenty.
func New(every time.Duration, now func() time.Time) *Watchdog {
	w := &Watchdog{every: every, now: now}
	w.mu.subjects = map[Subject]*memory{}
	return w
}

// Run looks until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Look(w.now())
		}
	}
}

// Add starts watching s. Any goroutine.
func (w *Watchdog) Add(s Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.subjects[s] = &memory{}
}

// Remove stops watching s. Any goroutine.
func (w *Watchdog) Remove(s Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.subjects, s)
}

// due is a call past a limit.
type due struct {
	subject Subject
	call    Call
	took    time.Duration
}

// Look checks every subject once. It acts outside of its lock, because waking runs connector code.
func (w *Watchdog) Look(now time.Time) {
	wake, abandon := w.overdue(now)
	for _, d := range wake {
		d.subject.Wake(d.took)
	}
	for _, d := range abandon {
		d.subject.Abandon(d.call, d.took)
	}
}

func (w *Watchdog) overdue(now time.Time) (wake, abandon []due) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, m := range w.mu.subjects {
		call, since, id := s.Clock().running()
		if call == None {
			continue
		}
		if m.call != id {
			*m = memory{call: id}
		}
		took := now.Sub(since)
		switch hard, cancel := s.Limits(); {
		case took >= cancel:
			abandon = append(abandon, due{s, call, took})
			delete(w.mu.subjects, s)
		case call == Poll && hard > 0 && took >= hard && !m.woken:
			m.woken = true
			wake = append(wake, due{s, call, took})
		}
	}
	return wake, abandon
}
