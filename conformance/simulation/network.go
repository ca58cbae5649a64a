package simulation

import (
	"sync"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// Partition cuts a reader off from the coordinator for a while. What the engine sends but once, because in one process nothing
// gets lost, is held back and delivered late; what it offers again may be lost, or its acknowledgement.
type Partition struct {
	Reader   sdk.ReaderID
	From, To time.Duration
	// Acks: commands arrive, and only their acknowledgements are lost.
	Acks bool
}

// network stands between coordinator and readers.
type network struct {
	of *life
	mu struct {
		sync.Mutex
		toReader      map[sdk.ReaderID]*backlog
		toCoordinator map[sdk.ReaderID]*backlog
		sent          uint64
	}
}

// backlog holds messages back, in order, until a partition is over.
type backlog struct {
	waiting []func() (again bool)
	armed   bool
}

func newNetwork(of *life) *network {
	n := &network{of: of}
	n.mu.toReader, n.mu.toCoordinator = map[sdk.ReaderID]*backlog{}, map[sdk.ReaderID]*backlog{}
	return n
}

// partition is the one that a reader is in, if any.
func (n *network) partition(reader sdk.ReaderID) (p Partition, left time.Duration) {
	age := time.Since(n.of.born)
	for _, p := range n.of.plan.Partitions {
		if p.Reader == reader && age >= p.From && age < p.To {
			return p, p.To - age
		}
	}
	return Partition{}, 0
}

// hold keeps a message back when there is a partition, or when earlier messages wait still.
func (n *network) hold(logs map[sdk.ReaderID]*backlog, reader sdk.ReaderID, deliver func() (again bool)) bool {
	_, left := n.partition(reader)
	n.mu.Lock()
	defer n.mu.Unlock()
	b := logs[reader]
	if b == nil {
		b = &backlog{}
		logs[reader] = b
	}
	if left == 0 && len(b.waiting) == 0 {
		return false
	}
	b.waiting = append(b.waiting, deliver)
	if !b.armed {
		b.armed = true
		time.AfterFunc(left, func() { n.release(b) })
	}
	return true
}

// release delivers what waits, also what comes meanwhile. What finds no room is delivered again later.
func (n *network) release(b *backlog) {
	for {
		n.mu.Lock()
		if len(b.waiting) == 0 {
			b.armed = false
			n.mu.Unlock()
			return
		}
		deliver := b.waiting[0]
		n.mu.Unlock()
		if deliver() {
			time.AfterFunc(time.Millisecond, func() { n.release(b) })
			return
		}
		n.mu.Lock()
		b.waiting = b.waiting[1:]
		n.mu.Unlock()
	}
}

// offer implements the seam of the same name.
func (n *network) offer(reader sdk.ReaderID, e *protocol.Envelope, deliver func(*protocol.Envelope) protocol.Ack) protocol.Ack {
	later := protocol.Ack{Status: protocol.RetryLater, RetryAfter: time.Millisecond}
	p, left := n.partition(reader)
	deliver = n.of.order.offered(e, deliver)
	switch {
	case left > 0 && p.Acks && (e.Kind == protocol.Barrier || !e.Kind.Reserved()):
		n.of.note("%s %d to reader %d arrives, and its acknowledgement does not", e.Kind, e.Sequence, reader)
		deliver(e)
		return later
	case e.Kind.Reserved(): // is sent but once
		held := func() bool { return deliver(e).Reason == protocol.ReasonReserved }
		if n.hold(n.mu.toReader, reader, held) {
			return protocol.Ack{Status: protocol.Accepted}
		}
	case left > 0 || n.behind(reader):
		return later
	}
	ack := deliver(e)
	n.again(e, ack, deliver)
	return ack
}

// behind reports that messages wait which were sent before.
func (n *network) behind(reader sdk.ReaderID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.mu.toReader[reader]
	return b != nil && len(b.waiting) > 0
}

// again delivers some commands once more, now or later. That may have no effect.
func (n *network) again(e *protocol.Envelope, ack protocol.Ack, deliver func(*protocol.Envelope) protocol.Ack) {
	if ack.Status != protocol.Accepted || n.of.plan.Duplicates == 0 {
		return
	}
	n.mu.Lock()
	n.mu.sent++
	h := mix(n.of.chaos.seed ^ mix(n.mu.sent))
	n.mu.Unlock()
	if float64(h>>11)/(1<<53) >= n.of.plan.Duplicates {
		return
	}
	once := func() {
		if s := deliver(e).Status; s == protocol.Accepted || s == protocol.RetryLater {
			n.of.violate("%s %d of epoch %d to attempt %d was admitted, and its second delivery is %s", e.Kind, e.Sequence, e.Epoch, e.Target, s)
		}
	}
	if d := time.Duration(mix(h) % uint64(20*time.Millisecond)); h&1 == 0 {
		time.AfterFunc(d, once)
	} else {
		once()
	}
}

// tell implements the seam of the same name.
func (n *network) tell(reader sdk.ReaderID, m seam.Message, deliver func()) {
	if p, left := n.partition(reader); left > 0 && p.Acks && m == seam.Watermark {
		return // lost
	}
	if !n.hold(n.mu.toCoordinator, reader, func() bool { deliver(); return false }) {
		deliver()
	}
}
