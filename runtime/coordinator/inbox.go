package coordinator

import (
	"sync"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// event is one thing to do on the loop.
type event struct {
	name string
	run  func() error
}

// maxReaderEvents bounds the connector events that wait per reader.
const maxReaderEvents = 64

// inbox is the bounded entrance of the loop. Any goroutine puts, the loop takes.
//
// What readers report over and over is coalesced into one slot per reader. Everything else is bounded by its senders: one
// registration per reader, one result per key, a handful of requests of the job. The limit only turns a mistake in that
// reasoning into an error instead of unbounded memory.
type inbox struct {
	limit    int
	now      func() time.Time
	oldest   *telemetry.Moment // when the first waiting event came
	doorbell chan struct{}     // one slot
	mu       struct {
		sync.Mutex
		queue    []event
		slots    map[sdk.ReaderID]*slot
		dirty    []sdk.ReaderID
		overflow bool
		closed   bool
	}
}

// slot is what a reader last reported.
type slot struct {
	attempt protocol.Attempt
	dirty   bool
	mark    *protocol.Watermark
	request bool
	events  []sdk.Event
}

func newInbox(limit int, now func() time.Time, oldest *telemetry.Moment) *inbox {
	in := &inbox{limit: limit, now: now, oldest: oldest, doorbell: make(chan struct{}, 1)}
	in.mu.slots = map[sdk.ReaderID]*slot{}
	return in
}

func (in *inbox) ring() {
	select {
	case in.doorbell <- struct{}{}:
	default:
	}
}

// put queues an event. After close it does nothing.
func (in *inbox) put(name string, run func() error) {
	in.mu.Lock()
	switch {
	case in.mu.closed:
	case len(in.mu.queue) >= in.limit:
		in.mu.overflow = true
	default:
		if len(in.mu.queue) == 0 {
			in.oldest.Set(in.now())
		}
		in.mu.queue = append(in.mu.queue, event{name, run})
	}
	in.mu.Unlock()
	in.ring()
}

// report updates the reader's slot and reports what change answered.
func (in *inbox) report(reader sdk.ReaderID, attempt protocol.Attempt, change func(*slot) bool) bool {
	in.mu.Lock()
	if in.mu.closed {
		in.mu.Unlock()
		return false
	}
	s := in.mu.slots[reader]
	if s == nil || s.attempt != attempt {
		if s != nil && s.attempt > attempt {
			in.mu.Unlock()
			return false // an attempt that is over
		}
		dirty := s != nil && s.dirty
		s = &slot{attempt: attempt, dirty: dirty}
		in.mu.slots[reader] = s
	}
	ok := change(s)
	if ok && !s.dirty {
		s.dirty = true
		in.mu.dirty = append(in.mu.dirty, reader)
	}
	in.mu.Unlock()
	in.ring()
	return ok
}

// take returns everything that waits.
func (in *inbox) take() (events []event, reports map[sdk.ReaderID]slot, overflow bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	events, in.mu.queue = in.mu.queue, nil
	in.oldest.Clear()
	if len(in.mu.dirty) > 0 {
		reports = make(map[sdk.ReaderID]slot, len(in.mu.dirty))
		for _, r := range in.mu.dirty {
			s := in.mu.slots[r]
			reports[r] = *s
			*s = slot{attempt: s.attempt}
		}
		in.mu.dirty = in.mu.dirty[:0]
	}
	return events, reports, in.mu.overflow
}

func (in *inbox) close() {
	in.mu.Lock()
	in.mu.closed, in.mu.queue, in.mu.slots, in.mu.dirty = true, nil, nil, nil
	in.mu.Unlock()
	in.ring()
}

func (in *inbox) length() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.mu.queue) + len(in.mu.dirty)
}
