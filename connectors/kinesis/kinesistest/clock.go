package kinesistest

import (
	"context"
	"sync"
	"time"
)

// Clock is the time of a server: what records are stamped with, when iterators expire, how long data is kept. Servers and the code under test may share
// one. Methods may be called from any goroutine.
type Clock struct {
	mu      sync.Mutex
	running bool
	at      time.Time     // of a clock that stands still
	ahead   time.Duration // of a running clock
	moved   chan struct{} // closed and replaced by Advance
}

// NewClock returns a clock that stands still at start and moves by [Clock.Advance] alone.
func NewClock(start time.Time) *Clock { return &Clock{at: start, moved: make(chan struct{})} }

// NewRunningClock returns a clock that goes with the system's (in a testing/synctest bubble with that of the bubble) and is put forward by [Clock.Advance].
func NewRunningClock() *Clock { return &Clock{running: true, moved: make(chan struct{})} }

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time {
	if c.running {
		return time.Now().Add(c.ahead)
	}
	return c.at
}

// Advance puts the clock forward by d and wakes whoever waits for a time that has come. A negative d does nothing: the service's time does not go back.
func (c *Clock) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.ahead += d
	close(c.moved)
	c.moved = make(chan struct{})
}

// until returns when the clock shows at, wake is closed, or ctx ends; only the last is an error.
func (c *Clock) until(ctx context.Context, at time.Time, wake <-chan struct{}) error {
	for {
		c.mu.Lock()
		left, moved, running := at.Sub(c.now()), c.moved, c.running
		c.mu.Unlock()
		if left <= 0 {
			return ctx.Err()
		}
		var due <-chan time.Time
		if running {
			timer := time.NewTimer(left)
			defer timer.Stop() // one for each Advance that this wait sees
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wake:
			return nil
		case <-moved:
		case <-due:
		}
	}
}
