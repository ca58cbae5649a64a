package cursor

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// pace is what the API allows to one token: who is told to wait makes everybody wait. It is all that readers and enumerators of a source share,
// it says nothing about positions, and losing it costs one call. Safe for concurrent use; the lock is not held while anybody waits.
type pace struct {
	mu    sync.Mutex
	until time.Time
}

// slow keeps everybody from calling for a while. A later end stands.
func (p *pace) slow(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) {
		p.until = until
	}
}

// wait returns when a call is allowed, or with the cause when ctx ends.
func (p *pace) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		until := p.until
		p.mu.Unlock()
		if !time.Now().Before(until) {
			return nil
		}
		if err := waitUntil(ctx, until); err != nil { // and look again: somebody may have been told to wait longer
			return err
		}
	}
}

// waitUntil returns at that time, or earlier with the cause when ctx ends.
func waitUntil(ctx context.Context, when time.Time) error {
	timer := time.NewTimer(time.Until(when))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Bounds of the pauses between calls that fail.
const (
	minBackOff = 200 * time.Millisecond
	maxBackOff = 30 * time.Second
)

// backOff is the pause after so many failures in a row: twice as long each time, and up to half shorter by chance, so that many who failed
// together do not come back together.
func backOff(failures int) time.Duration {
	pause := minBackOff
	for ; failures > 1 && pause < maxBackOff; failures-- {
		pause *= 2
	}
	pause = min(pause, maxBackOff)
	return pause - rand.N(pause/2)
}

// What a 429 without a usable Retry-After means, and the longest wait that one is taken to mean; then it is asked again.
const (
	defaultRetryAfter = 5 * time.Second
	maxRetryAfter     = 24 * time.Hour
)

// retryAfter reads the header of that name: seconds, or a date. It answers 0 for one that is missing, makes no sense, or is over.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	if when, err := http.ParseTime(header); err == nil {
		return min(max(when.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
