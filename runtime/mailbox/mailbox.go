package mailbox

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
)

// Limits bound one mailbox.
type Limits struct {
	Commands         int
	Bytes            int64
	ReservedCommands int
	ReservedBytes    int64
	PayloadBytes     int
	RetryAfter       time.Duration // the hint in RetryLater
}

// Entry is an admitted command.
type Entry struct {
	Envelope *protocol.Envelope
	Sequence uint64 // mailbox sequence
	Admitted time.Time
}

// Mailbox admits commands for one attempt. Offer may be called from any goroutine; Take and Close belong to the reader
// loop, except that Close may also come from whoever fences the attempt.
type Mailbox struct {
	target protocol.Attempt
	limits Limits
	budget *Budget
	now    func() time.Time
	ring   func() // wakes the loop; must not block
	// reserved, if any, is called under the lock between reservation and publication; see Watch.
	reserved func(e *protocol.Envelope) error

	length atomic.Int64 // of the queue, for a cheap Empty

	mu struct {
		sync.Mutex
		queue    []Entry // queue[head:] is pending
		head     int
		sequence uint64
		epoch    protocol.Epoch // newest admitted
		seen     Window         // of that epoch
		normal   usage
		reserved usage
		closed   bool
		broken   bool // reserved capacity was exhausted
	}
}

type usage struct {
	count int
	bytes int64
}

// New returns an open mailbox for target. ring is called after each admission, on the sender's goroutine.
func New(target protocol.Attempt, limits Limits, budget *Budget, now func() time.Time, ring func()) *Mailbox {
	return &Mailbox{target: target, limits: limits, budget: budget, now: now, ring: ring}
}

// Watch lets reserved see each command between the reservation of its capacity and its publication, under the mailbox's lock.
// Its error undoes the reservation. Call it before the first Offer; see package seam.
func (m *Mailbox) Watch(reserved func(e *protocol.Envelope) error) { m.reserved = reserved }

// Offer admits e or says why not. It never blocks.
func (m *Mailbox) Offer(e *protocol.Envelope) protocol.Ack {
	if status, reason := e.Validate(m.limits.PayloadBytes); status != protocol.Accepted {
		return m.refuse(status, reason)
	}
	if e.Target != m.target {
		return m.refuse(protocol.StaleTarget, protocol.ReasonOldAttempt)
	}
	ack := m.admit(e)
	if ack.Status == protocol.Accepted {
		m.ring()
	}
	return ack
}

func (m *Mailbox) refuse(status protocol.Status, reason protocol.Reason) protocol.Ack {
	ack := protocol.Ack{Status: status, Target: m.target, Reason: reason}
	if status == protocol.RetryLater {
		ack.RetryAfter = m.limits.RetryAfter
	}
	return ack
}

// admit holds the lock for memory work only.
func (m *Mailbox) admit(e *protocol.Envelope) protocol.Ack {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.closed:
		return m.refuse(protocol.TerminalRejected, protocol.ReasonClosed)
	case e.Epoch < m.mu.epoch:
		return m.refuse(protocol.StaleTarget, protocol.ReasonOldEpoch)
	case e.Epoch == m.mu.epoch && m.mu.seen.Seen(e.Sequence):
		return m.refuse(protocol.Duplicate, protocol.ReasonNone)
	}
	if status, reason := m.reserve(e); status != protocol.Accepted {
		return m.refuse(status, reason)
	}
	if m.reserved != nil && m.reserved(e) != nil {
		m.release(e)
		return m.refuse(protocol.TerminalRejected, protocol.ReasonClosed)
	}
	seen := &m.mu.seen
	if e.Epoch > m.mu.epoch {
		seen = &Window{}
	}
	if _, ok := seen.Add(e.Sequence); !ok {
		m.release(e)
		return m.refuse(protocol.RetryLater, protocol.ReasonSequenceWindow)
	}
	m.mu.epoch, m.mu.seen = e.Epoch, *seen
	m.mu.sequence++
	m.mu.queue = append(m.mu.queue, Entry{Envelope: e, Sequence: m.mu.sequence, Admitted: m.now()})
	m.length.Add(1)
	return protocol.Ack{Status: protocol.Accepted, Target: m.target, MailboxSequence: m.mu.sequence}
}

func (m *Mailbox) reserve(e *protocol.Envelope) (protocol.Status, protocol.Reason) {
	n := int64(len(e.Payload))
	if e.Kind.Reserved() {
		if m.mu.reserved.count >= m.limits.ReservedCommands || m.mu.reserved.bytes+n > m.limits.ReservedBytes {
			m.mu.broken = true
			return protocol.TerminalRejected, protocol.ReasonReserved
		}
		m.mu.reserved.count++
		m.mu.reserved.bytes += n
		return protocol.Accepted, protocol.ReasonNone
	}
	switch {
	case m.mu.normal.count >= m.limits.Commands:
		return protocol.RetryLater, protocol.ReasonMailboxCount
	case m.mu.normal.bytes+n > m.limits.Bytes:
		return protocol.RetryLater, protocol.ReasonMailboxBytes
	case !m.budget.reserve(n):
		return protocol.RetryLater, protocol.ReasonProcessBytes
	}
	m.mu.normal.count++
	m.mu.normal.bytes += n
	return protocol.Accepted, protocol.ReasonNone
}

func (m *Mailbox) release(e *protocol.Envelope) {
	n := int64(len(e.Payload))
	if e.Kind.Reserved() {
		m.mu.reserved.count--
		m.mu.reserved.bytes -= n
		return
	}
	m.mu.normal.count--
	m.mu.normal.bytes -= n
	m.budget.release(n)
}

// Empty is a cheap hint for the loop. After a ring it is not true until the command that rang was taken.
func (m *Mailbox) Empty() bool { return m.length.Load() == 0 }

// Take removes the oldest command and gives its capacity back.
func (m *Mailbox) Take() (Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.head == len(m.mu.queue) {
		return Entry{}, false
	}
	e := m.mu.queue[m.mu.head]
	m.mu.queue[m.mu.head] = Entry{}
	m.mu.head++
	if m.mu.head == len(m.mu.queue) {
		m.mu.queue, m.mu.head = m.mu.queue[:0], 0
	} else if m.mu.head >= 64 && m.mu.head*2 >= len(m.mu.queue) {
		n := copy(m.mu.queue, m.mu.queue[m.mu.head:])
		clear(m.mu.queue[n:])
		m.mu.queue, m.mu.head = m.mu.queue[:n], 0
	}
	m.release(e.Envelope)
	m.length.Add(-1)
	return e, true
}

// Close refuses everything from now on and drops what is pending. It may be called more than once.
func (m *Mailbox) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.closed = true
	for _, e := range m.mu.queue[m.mu.head:] {
		m.release(e.Envelope)
	}
	m.mu.queue, m.mu.head = nil, 0
	m.length.Store(0)
}

// Stats describes a mailbox at one moment.
type Stats struct {
	Commands         int
	Bytes            int64
	ReservedCommands int
	ReservedBytes    int64
	Oldest           time.Time // admission of the oldest pending command; zero when empty
	Broken           bool      // reserved capacity was exhausted: the task must fail
}

// Stats may be called from any goroutine.
func (m *Mailbox) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{
		Commands: m.mu.normal.count, Bytes: m.mu.normal.bytes,
		ReservedCommands: m.mu.reserved.count, ReservedBytes: m.mu.reserved.bytes, Broken: m.mu.broken,
	}
	if m.mu.head < len(m.mu.queue) {
		s.Oldest = m.mu.queue[m.mu.head].Admitted
	}
	return s
}
