package kinesis

import (
	"sync"
	"time"
)

// What the service allows for one shard, over all who poll it.
const (
	callsPerSecond = 5
	bytesPerSecond = 2 << 20
	// window is a second and what two requests may lose of their distance on the way.
	window = time.Second + 50*time.Millisecond
	// afterThrottle is the pause that the service asks for.
	afterThrottle = time.Second
)

// budget is how often one shard may be polled: five calls in any second and 2 MiB a second, where a page may have up to 10 MiB and is paid
// for by waiting, up to five seconds. Safe for concurrent use.
type budget struct {
	mu    sync.Mutex
	calls [callsPerSecond]time.Time // the last ones, as a ring
	next  int
	until time.Time // not before: bytes are paid for
}

// take answers 0 and counts a call, or answers how long to wait and counts nothing.
func (b *budget) take(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	allowed := b.calls[b.next].Add(window)
	if b.until.After(allowed) {
		allowed = b.until
	}
	if wait := allowed.Sub(now); wait > 0 {
		return wait
	}
	b.calls[b.next] = now
	b.next = (b.next + 1) % callsPerSecond
	return 0
}

// sent says that the call that was counted last goes out only now: something had to be asked for first.
func (b *budget) sent(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := (b.next + callsPerSecond - 1) % callsPerSecond
	if now.After(b.calls[last]) {
		b.calls[last] = now
	}
}

// paid counts what a call that began then has brought.
func (b *budget) paid(began time.Time, bytes int64) {
	b.wait(began.Add(time.Duration(bytes) * time.Second / bytesPerSecond))
}

// throttled says that the service refused a call.
func (b *budget) throttled(now time.Time) { b.wait(now.Add(afterThrottle)) }

func (b *budget) wait(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until.After(b.until) {
		b.until = until
	}
}

func (b *budget) idle(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if now.Sub(c) < time.Minute {
			return false
		}
	}
	return true
}
