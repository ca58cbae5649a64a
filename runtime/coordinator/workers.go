package coordinator

import (
	"context"
	"sync"
)

// Workers is the pool on which slow work of all coordinators of a process runs. It starts a goroutine per running call, at
// most as many as it has places; what waits is bounded by the callers, one per key.
type Workers struct {
	places chan struct{}
	wg     sync.WaitGroup
}

// NewWorkers returns a pool with n places.
func NewWorkers(n int) *Workers { return &Workers{places: make(chan struct{}, n)} }

// submit runs work once there is a place, or dropped when ctx ends first. It never blocks.
func (w *Workers) submit(ctx context.Context, work, dropped func()) {
	w.wg.Go(func() {
		select {
		case w.places <- struct{}{}:
			defer func() { <-w.places }()
			if ctx.Err() != nil { // cancelled while it waited, and both were ready
				dropped()
				return
			}
			work()
		case <-ctx.Done():
			dropped()
		}
	})
}

// Wait returns when no call runs, or ctx ends. A call that ignores its context keeps its place until it returns.
func (w *Workers) Wait(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { w.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
