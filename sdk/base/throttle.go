package base

import (
	"context"
	"time"
)

// The pause between fetches that bring nothing and return at once. One such fetch is free; a client that polls without
// blocking comes down to ten calls a second.
const (
	minEmptyPause = time.Millisecond
	maxEmptyPause = 100 * time.Millisecond
)

// throttle keeps fetches that return empty at once from spinning. A fetch that itself waited as long pays nothing.
type throttle struct {
	pause time.Duration // zero: the last fetch brought something
}

func (t *throttle) reset() { t.pause = 0 }

// wait is told of an empty fetch that took so long. It returns early when ctx ends.
func (t *throttle) wait(ctx context.Context, took time.Duration) {
	rest := t.pause - took
	t.pause = min(max(minEmptyPause, 2*t.pause), maxEmptyPause)
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
