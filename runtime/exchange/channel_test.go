package exchange

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// batchOf returns a batch with one record that carries n.
func batchOf(n int64) *sdk.Batch {
	b := &sdk.Batch{}
	b.Append(&sdk.Record{Offset: n})
	return b
}

func offsets(b *sdk.Batch) []int64 {
	var all []int64
	for r := range b.All() {
		all = append(all, r.Offset)
	}
	return all
}

func barrier(id sdk.CheckpointID) protocol.BarrierPayload {
	return protocol.BarrierPayload{Checkpoint: id, Kind: protocol.Periodic}
}

// walker runs one sequence of steps against a channel and a plain list, and keeps what the two parties know.
type walker struct {
	c      *Channel
	model  []int64 // batches as their number, barriers as minus theirs
	number int64
	closed bool

	receiverRung bool // since it last found nothing
	senderRung   bool // since it last found no credit
	starved      bool // the sender found no credit, and nobody rang since
	unflushed    int  // batches since the sender last flushed
}

func newWalker(credit int) *walker {
	w := &walker{}
	w.c = NewChannel(credit, func() { w.receiverRung = true }, func() { w.senderRung, w.starved = true, false })
	return w
}

func (w *walker) batches() int {
	n := 0
	for _, it := range w.model {
		if it > 0 {
			n++
		}
	}
	return n
}

// step performs one of: s(end) with credit asked first, f(lush), b(arrier), r(eceive), c(lose).
func (w *walker) step(op byte) error {
	switch op {
	case 's':
		full := !w.closed && w.batches() >= w.c.credit
		if credit := w.c.Credit(); credit == full {
			return fmt.Errorf("credit is %t with %d batches queued", credit, w.batches())
		}
		if full {
			w.starved, w.senderRung = true, false
			return nil
		}
		w.number++
		if ok := w.c.Send(batchOf(w.number)); ok == w.closed {
			return fmt.Errorf("Send is %t, closed is %t", ok, w.closed)
		}
		if !w.closed {
			w.model = append(w.model, w.number)
			w.unflushed++
		}
	case 'f':
		w.c.Flush()
		w.unflushed = 0
	case 'b':
		w.number++
		if ok := w.c.Barrier(barrier(sdk.CheckpointID(w.number))); ok == w.closed {
			return fmt.Errorf("Barrier is %t, closed is %t", ok, w.closed)
		}
		if !w.closed {
			w.model = append(slices.DeleteFunc(w.model, func(it int64) bool { return it < 0 }), -w.number)
			w.unflushed = 0
		}
	case 'r':
		return w.receive()
	case 'c':
		w.c.Close()
		if !w.receiverRung || w.starved {
			return fmt.Errorf("close did not ring both sides")
		}
		w.closed, w.model, w.unflushed = true, nil, 0
	}
	return nil
}

func (w *walker) receive() error {
	it, ok := w.c.Receive()
	switch {
	case ok != (len(w.model) > 0):
		return fmt.Errorf("Receive is %t with %v waiting", ok, w.model)
	case !ok:
		w.receiverRung = false // it parks; a ring that came before may have been used up
		return nil
	}
	want := w.model[0]
	w.model = w.model[1:]
	if it.Batch == nil {
		if want != -int64(it.Barrier.Checkpoint) {
			return fmt.Errorf("received barrier %d, want %d", it.Barrier.Checkpoint, want)
		}
		return nil
	}
	if got := offsets(it.Batch); len(got) != 1 || got[0] != want {
		return fmt.Errorf("received batch %v, want %d", got, want)
	}
	w.c.Put(it.Batch)
	return nil
}

// check says what holds after every step.
func (w *walker) check() error {
	waiting := len(w.model) > 0
	switch {
	case waiting && w.unflushed == 0 && !w.receiverRung:
		return fmt.Errorf("%v waits, the sender has flushed, and the parked receiver was not rung", w.model)
	case waiting && 4*w.batches() >= w.c.credit && 4*w.unflushed >= w.c.credit && !w.receiverRung:
		return fmt.Errorf("a quarter of the credit waits and the parked receiver was not rung")
	case w.starved && 2*w.batches() <= w.c.credit:
		return fmt.Errorf("the sender starves with %d of %d queued", w.batches(), w.c.credit)
	case queuedBatches(w.c) != w.batches():
		return fmt.Errorf("Queued is %d, want %d", queuedBatches(w.c), w.batches())
	}
	held := 0
	for _, it := range w.c.mu.queue {
		if it != (Item{}) {
			held++
		}
	}
	if held != len(w.model) {
		return fmt.Errorf("the queue holds on to %d items, %d are waiting", held, len(w.model))
	}
	return nil
}

// Every sequence of steps up to a length, for every small credit, and a close after each of them: order, credit, barriers, and
// above all that no ring is lost. Each step holds the channel's lock, so these are all interleavings of two goroutines.
func TestChannelAllInterleavings(t *testing.T) {
	t.Parallel()
	const alphabet, depth, afterwards = "sfbr", 7, "csbfrsc"
	for credit := 1; credit <= 4; credit++ {
		t.Run(fmt.Sprintf("credit %d", credit), func(t *testing.T) {
			t.Parallel()
			total := 1
			for length := range depth + 1 {
				for n := range total {
					path := make([]byte, 0, depth+len(afterwards))
					for rest := n; len(path) < length; rest /= len(alphabet) {
						path = append(path, alphabet[rest%len(alphabet)])
					}
					walk(t, credit, append(path, afterwards...))
				}
				total *= len(alphabet)
			}
		})
	}
}

func walk(t *testing.T, credit int, path []byte) {
	w := newWalker(credit)
	for i, op := range path {
		err := w.step(op)
		if err == nil {
			err = w.check()
		}
		if err != nil {
			t.Fatalf("after %s: %v", path[:i+1], err)
		}
	}
}

// A sender whose channel was closed may still believe that it has credit: what it sends is dropped, nothing panics.
func TestChannelDropsAfterClose(t *testing.T) {
	t.Parallel()
	rings := 0
	c := NewChannel(1, func() { rings++ }, func() { rings++ })
	c.Send(batchOf(1))
	c.Close()
	c.Close()
	if !c.Credit() || c.Send(batchOf(2)) || c.Barrier(barrier(1)) || !c.Closed() {
		t.Error("a closed channel answers as if it were open")
	}
	if _, ok := c.Receive(); ok || queuedBatches(c) != 0 {
		t.Error("a closed channel still holds something")
	}
	if b := c.Get(); b == nil || b.Len() != 0 {
		t.Error("a closed channel has no empty batch to fill")
	}
}

func TestChannelRefusesAnOverrun(t *testing.T) {
	t.Parallel()
	c := NewChannel(1, func() {}, func() {})
	c.Send(batchOf(1))
	defer func() {
		if recover() == nil {
			t.Error("a batch without credit was taken")
		}
		c.mu.Lock() // the panic left no lock behind
		defer c.mu.Unlock()
	}()
	c.Send(batchOf(2))
}

// What a batch referred to is dropped when it is given back, so that a quiet channel keeps no payload alive.
func TestChannelKeepsNoPayload(t *testing.T) {
	t.Parallel()
	c := NewChannel(2, func() {}, func() {})
	for range 50 { // a pool may drop what it is given, and does so under the race detector
		b := c.Get()
		if b.Len() != 0 || b.Bytes() != 0 || len(offsets(b)) != 0 {
			t.Fatal("a batch came back with content")
		}
		b.Append(&sdk.Record{Value: make([]byte, 100)})
		b.AppendView(fixedView(3), 0, 3)
		c.Send(b)
		it, _ := c.Receive()
		c.Put(it.Batch)
	}
}

// fixedView is a view of n records whose offsets are their indexes.
type fixedView int

func (v fixedView) Len() int                 { return int(v) }
func (v fixedView) Bytes(from, to int) int64 { return int64(to - from) }
func (v fixedView) Record(i int, into *sdk.Record) bool {
	*into = sdk.Record{Key: []byte{byte(i)}, Offset: int64(i)}
	return true
}

// Two goroutines that park on their doorbells: in a bubble a lost ring is a deadlock, which fails the test.
func TestChannelBetweenTwoGoroutines(t *testing.T) {
	t.Parallel()
	for _, credit := range []int{1, 2, 3, 16} {
		t.Run(fmt.Sprint(credit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const count = 3000
				c, sender, receiver := ringed(credit)
				var wg sync.WaitGroup
				wg.Go(func() {
					for i := int64(1); i <= count; i++ {
						for !c.Credit() {
							c.Flush()
							<-sender
						}
						b := c.Get()
						b.Append(&sdk.Record{Offset: i})
						c.Send(b)
						if i%97 == 0 {
							c.Barrier(barrier(sdk.CheckpointID(i)))
						}
					}
					c.Flush()
				})
				next := int64(1)
				for next <= count {
					it, ok := c.Receive()
					if !ok {
						<-receiver
						continue
					}
					if it.Batch == nil {
						if int64(it.Barrier.Checkpoint) != next-1 {
							t.Errorf("barrier %d arrived before batch %d", it.Barrier.Checkpoint, next)
						}
						continue
					}
					if got := offsets(it.Batch); !slices.Equal(got, []int64{next}) {
						t.Fatalf("batch %v arrived, want %d", got, next)
					}
					next++
					c.Put(it.Batch)
				}
				wg.Wait()
			})
		})
	}
}

// ringed returns a channel with doorbells of one slot.
func ringed(credit int) (c *Channel, sender, receiver chan struct{}) {
	bell := func(ch chan struct{}) func() {
		return func() {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
	sender, receiver = make(chan struct{}, 1), make(chan struct{}, 1)
	return NewChannel(credit, bell(receiver), bell(sender)), sender, receiver
}

// Closing from a third goroutine while both are busy: both leave, and nothing stays in the channel.
func TestChannelCloseReleasesBothSides(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			c, sender, receiver := ringed(2)
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					for !c.Credit() {
						c.Flush()
						<-sender
					}
					if !c.Send(c.Get()) {
						return
					}
				}
			})
			wg.Go(func() {
				for !c.Closed() {
					if it, ok := c.Receive(); ok {
						c.Put(it.Batch)
						continue
					}
					<-receiver
				}
			})
			wg.Go(c.Close)
			wg.Wait()
			if queuedBatches(c) != 0 || strings.Trim(fmt.Sprint(c.mu.queue), "[]{<nil> 0}") != "" {
				t.Errorf("left in a closed channel: %v", c.mu.queue)
			}
		})
	}
}

// BenchmarkHop is one batch of 64 records from one goroutine to another and back for reuse.
func BenchmarkHop(b *testing.B) {
	c, sender, receiver := ringed(16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			it, ok := c.Receive()
			switch {
			case !ok:
				<-receiver
			case it.Batch == nil:
				return
			default:
				c.Put(it.Batch)
			}
		}
	}()
	rec := &sdk.Record{Value: make([]byte, 100)}
	b.ReportAllocs()
	for b.Loop() {
		for !c.Credit() {
			<-sender
		}
		batch := c.Get()
		for range 64 {
			batch.Append(rec)
		}
		c.Send(batch)
	}
	c.Barrier(barrier(1))
	<-done
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/record")
}

// queuedBatches is the number of waiting batches, once it is sure that their bytes fit to it.
func queuedBatches(c *Channel) int {
	n, bytes := c.Queued()
	if n == 0 && bytes != 0 {
		return -1
	}
	return n
}
