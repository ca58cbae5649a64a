package mailbox

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
)

// sender offers its own sequences, again and again until each is accepted, and many of them twice.
func sender(m *Mailbox, first, step, count protocol.Sequence, accepted *int, wg *sync.WaitGroup) {
	defer wg.Done()
	seq, sent := first, protocol.Sequence(0)
	for sent < count {
		size := int(seq % 40)
		kind := protocol.AddSplits
		if seq%10 == 0 {
			kind = protocol.CheckpointComplete
		}
		switch a := m.Offer(command(kind, 1, 7, seq, size)); a.Status {
		case protocol.Accepted:
			*accepted++
			if seq%3 == 0 { // the acknowledgement is lost: offer it again
				if a := m.Offer(command(kind, 1, 7, seq, size)); a.Status == protocol.Accepted {
					*accepted += 1_000_000 // admitted twice
				}
			}
		case protocol.TerminalRejected:
			if a.Reason == protocol.ReasonClosed {
				return
			}
			runtime.Gosched() // reserved capacity: this test overloads it on purpose
			continue
		case protocol.RetryLater:
			runtime.Gosched()
			continue
		case protocol.Duplicate, protocol.StaleTarget, protocol.UnsupportedProtocol, protocol.InvalidPayload:
			panic("a valid command was answered " + a.Status.String())
		}
		seq += step
		sent++
	}
}

// Many senders and one taker: everything accepted is taken exactly once, in order per sender, and all capacity comes back.
func TestManySendersOneTaker(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 400
	b := NewBudget(600)
	bell := make(chan struct{}, 1)
	ring := func() {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
	m := New(7, Limits{Commands: 16, Bytes: 500, ReservedCommands: 4, ReservedBytes: 100, PayloadBytes: 100}, b, time.Now, ring)
	var wg sync.WaitGroup
	accepted := make([]int, senders)
	for i := range senders {
		wg.Add(1)
		go sender(m, protocol.Sequence(i+1), senders, each, &accepted[i], &wg)
	}
	last := make([]protocol.Sequence, senders)
	next, taken := uint64(1), 0
	for taken < senders*each {
		for {
			e, ok := m.Take()
			if !ok {
				break
			}
			from := int(e.Envelope.Sequence-1) % senders
			if e.Sequence != next || e.Envelope.Sequence <= last[from] {
				t.Fatalf("took #%d (want #%d), sequence %d of sender %d after %d", e.Sequence, next, e.Envelope.Sequence, from, last[from])
			}
			last[from] = e.Envelope.Sequence
			next++
			taken++
		}
		if taken < senders*each {
			<-bell // a lost ring hangs here
		}
	}
	wg.Wait()
	for i, n := range accepted {
		if n != each {
			t.Errorf("sender %d had %d accepted, want %d", i, n, each)
		}
	}
	if st := m.Stats(); st.Commands+st.ReservedCommands != 0 || st.Bytes+st.ReservedBytes != 0 || b.Used() != 0 || !m.Empty() {
		t.Errorf("left over: %+v, process %d", st, b.Used())
	}
}

// Close races with senders and a taker of several mailboxes that share a budget: nothing stays reserved.
func TestCloseGivesTheProcessBudgetBack(t *testing.T) {
	t.Parallel()
	b := NewBudget(2000)
	for range 50 {
		var wg sync.WaitGroup
		for range 3 {
			m := New(7, Limits{Commands: 50, Bytes: 1000, ReservedCommands: 8, ReservedBytes: 500, PayloadBytes: 100, RetryAfter: 1}, b, time.Now, func() {})
			accepted := make([]int, 2)
			for i := range accepted {
				wg.Add(1)
				go sender(m, protocol.Sequence(i+1), 2, 1_000_000, &accepted[i], &wg)
			}
			wg.Go(func() {
				for range 40 {
					m.Take()
				}
				m.Close()
				m.Close()
			})
		}
		wg.Wait()
		if b.Used() != 0 {
			t.Fatalf("%d bytes stay reserved after every mailbox closed", b.Used())
		}
	}
}

// Admission is memory work: validation, one lock, one ring. It allocates nothing once the queue has its size.
func BenchmarkOffer(b *testing.B) {
	for _, size := range []int{100, 4096} {
		b.Run(map[int]string{100: "100B", 4096: "4KiB"}[size], func(b *testing.B) {
			m := New(7, Limits{Commands: 1024, Bytes: 4 << 20, PayloadBytes: 512 << 10}, NewBudget(256<<20), time.Now, func() {})
			e := command(protocol.AddSplits, 1, 7, 1, size)
			b.ReportAllocs()
			for b.Loop() {
				if a := m.Offer(e); a.Status != protocol.Accepted {
					b.Fatalf("%+v", a)
				}
				m.Take()
				e.Sequence++
			}
		})
	}
}

func TestOfferDoesNotAllocate(t *testing.T) {
	m := New(7, Limits{Commands: 1024, Bytes: 4 << 20, PayloadBytes: 512 << 10}, NewBudget(256<<20), time.Now, func() {})
	e := command(protocol.AddSplits, 1, 7, 1, 100)
	if n := testing.AllocsPerRun(1000, func() { m.Offer(e); m.Take(); e.Sequence++ }); n != 0 {
		t.Errorf("admission allocates %v times", n)
	}
}
