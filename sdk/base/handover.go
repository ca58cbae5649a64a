package base

import (
	"sync"
	"sync/atomic"
)

// handover is the bounded queue between one fetcher, the only producer, and the reader loop, the only consumer. It is
// bounded by count and by bytes; an empty one admits anything, so an oversize item passes alone and nothing is ever too
// large to move.
//
// It never blocks and knows nothing of wakeups: offer refuses, and the producer, who keeps the item, waits at room. That is
// why no wakeup can lose an item. There is one producer, so a ring of room cannot reach somebody who no longer waits.
type handover[T any] struct {
	maxItems int
	maxBytes int64
	// room holds one ring: something was taken since the last look. It may be stale, never missing.
	room chan struct{}
	// count mirrors len(mu.items), so that a loop that looks at many empty queues takes no lock.
	count atomic.Int64

	mu struct {
		sync.Mutex
		items  []weighed[T]
		bytes  int64
		closed bool
	}
}

type weighed[T any] struct {
	item  T
	bytes int64
}

func newHandover[T any](maxItems int, maxBytes int64) *handover[T] {
	return &handover[T]{maxItems: maxItems, maxBytes: maxBytes, room: make(chan struct{}, 1)}
}

// offer appends item unless a bound is reached or the queue is closed. first reports that it was empty, which is when the
// consumer has to be told.
func (h *handover[T]) offer(item T, bytes int64) (accepted, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.mu.items); n > 0 && (n >= h.maxItems || h.mu.bytes+bytes > h.maxBytes) {
		return false, false
	}
	return h.appendLocked(item, bytes)
}

// leave appends item whatever the bounds, for the consumer to drop: a producer that stops gives away the one item it
// still holds. False means that the consumer is gone and the item is the producer's to drop.
func (h *handover[T]) leave(item T, bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	accepted, _ := h.appendLocked(item, bytes)
	return accepted
}

func (h *handover[T]) appendLocked(item T, bytes int64) (accepted, first bool) {
	if h.mu.closed {
		return false, false
	}
	h.mu.items = append(h.mu.items, weighed[T]{item, bytes})
	h.mu.bytes += bytes
	return true, h.count.Add(1) == 1
}

// take removes the oldest item.
func (h *handover[T]) take() (item T, ok bool) {
	if h.empty() {
		return item, false
	}
	h.mu.Lock()
	item = h.mu.items[0].item
	h.mu.bytes -= h.mu.items[0].bytes
	last := copy(h.mu.items, h.mu.items[1:]) // at most maxItems, a handful
	h.mu.items[last] = weighed[T]{}
	h.mu.items = h.mu.items[:last]
	h.count.Add(-1)
	h.mu.Unlock()
	select {
	case h.room <- struct{}{}:
	default:
	}
	return item, true
}

// empty reports that there is nothing to take.
func (h *handover[T]) empty() bool { return h.count.Load() == 0 }

// close ends the queue and answers what was left in it. From then on the producer keeps what it has.
func (h *handover[T]) close() []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []T
	for _, w := range h.mu.items {
		left = append(left, w.item)
	}
	h.mu.items, h.mu.bytes, h.mu.closed = nil, 0, true
	h.count.Store(0)
	return left
}
