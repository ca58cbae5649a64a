package exchange

import (
	"sync"
	"sync/atomic"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Item is what travels: a batch, or a barrier when Batch is nil.
type Item struct {
	Batch   *sdk.Batch
	Barrier protocol.BarrierPayload
}

// Channel is a bounded queue from one reader loop to one sink loop. Each method says which of the two calls it.
type Channel struct {
	credit   int
	receiver func() // rings the receiver; must not block
	sender   func() // rings the sender; must not block

	queued atomic.Int64 // batches in the queue
	bytes  atomic.Int64 // their payload
	mu     struct {
		sync.Mutex
		queue   []Item // ring; grows up to all credit and one barrier, since most channels of a wide exchange stay short
		head    int
		length  int
		unrung  int  // items that the receiver was not told of
		starved bool // the sender found no credit
		closed  bool
	}
}

// NewChannel returns a channel that holds at most credit batches.
func NewChannel(credit int, receiver, sender func()) *Channel {
	return &Channel{credit: credit, receiver: receiver, sender: sender}
}

// Credit reports whether another batch fits. Called by the sender; after false the sender is rung once half is free.
func (c *Channel) Credit() bool {
	if c.queued.Load() < int64(c.credit) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued.Load() < int64(c.credit) || c.mu.closed {
		return true
	}
	c.mu.starved = true
	return false
}

// batches are empty and shared by all channels of the process: the one used last is the one that a processor still has in
// its cache, and what a burst needed is given back to the collector.
var batches = sync.Pool{New: func() any { return new(sdk.Batch) }}

// Get returns an empty batch to fill. Called by the sender.
func (c *Channel) Get() *sdk.Batch { return batches.Get().(*sdk.Batch) }

// Send queues a batch, for which there must be credit. It reports false when the channel is closed: the attempt was
// fenced, and the batch is dropped. Called by the sender.
func (c *Channel) Send(b *sdk.Batch) bool {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return false
	}
	if c.queued.Load() >= int64(c.credit) {
		c.mu.Unlock()
		panic("exchange: batch sent without credit")
	}
	c.queued.Add(1)
	c.bytes.Add(b.Bytes())
	c.push(Item{Batch: b})
	ring := c.mu.unrung*4 >= c.credit
	if ring {
		c.mu.unrung = 0
	}
	c.mu.Unlock()
	if ring {
		c.receiver()
	}
	return true
}

// Barrier queues a barrier behind everything sent, and rings. It needs no credit: an older barrier that still waits belongs
// to a checkpoint that was given up, and makes room. Called by the sender.
func (c *Channel) Barrier(b protocol.BarrierPayload) bool {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return false
	}
	c.dropBarriers()
	c.push(Item{Barrier: b})
	c.mu.unrung = 0
	c.mu.Unlock()
	c.receiver()
	return true
}

// Flush rings the receiver if it was not told of the last batches. Called by the sender before it goes idle.
func (c *Channel) Flush() {
	c.mu.Lock()
	ring := c.mu.unrung > 0
	c.mu.unrung = 0
	c.mu.Unlock()
	if ring {
		c.receiver()
	}
}

func (c *Channel) push(it Item) {
	if c.mu.length == len(c.mu.queue) {
		c.grow()
	}
	c.mu.queue[(c.mu.head+c.mu.length)%len(c.mu.queue)] = it
	c.mu.length++
	c.mu.unrung++
}

func (c *Channel) grow() {
	wider := make([]Item, min(max(2*len(c.mu.queue), 4), c.credit+1))
	for i := range c.mu.length {
		wider[i] = c.mu.queue[(c.mu.head+i)%len(c.mu.queue)]
	}
	c.mu.queue, c.mu.head = wider, 0
}

// dropBarriers keeps the batches in order and removes barriers between them.
func (c *Channel) dropBarriers() {
	size, kept := len(c.mu.queue), 0
	for i := range c.mu.length {
		it := c.mu.queue[(c.mu.head+i)%size]
		if it.Batch == nil {
			continue
		}
		c.mu.queue[(c.mu.head+kept)%size] = it
		kept++
	}
	c.mu.length = kept
}

// Receive takes the oldest item. Called by the receiver.
func (c *Channel) Receive() (Item, bool) {
	c.mu.Lock()
	if c.mu.length == 0 {
		c.mu.Unlock()
		return Item{}, false
	}
	it := c.mu.queue[c.mu.head]
	c.mu.queue[c.mu.head] = Item{}
	c.mu.head = (c.mu.head + 1) % len(c.mu.queue)
	c.mu.length--
	ring := false
	if it.Batch != nil {
		n := c.queued.Add(-1)
		c.bytes.Add(-it.Batch.Bytes())
		if c.mu.starved && n*2 <= int64(c.credit) {
			c.mu.starved, ring = false, true
		}
	}
	c.mu.unrung = min(c.mu.unrung, c.mu.length)
	c.mu.Unlock()
	if ring {
		c.sender()
	}
	return it, true
}

// Put gives a batch back for reuse. Either side calls it.
func (c *Channel) Put(b *sdk.Batch) {
	b.Reset()
	batches.Put(b)
}

// Close drops what waits and refuses everything from now on. Any goroutine may call it, more than once: it is how the
// output of an abandoned attempt is fenced.
func (c *Channel) Close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.queue, c.mu.length, c.mu.head = nil, 0, 0
	c.queued.Store(0)
	c.bytes.Store(0)
	c.mu.Unlock()
	c.sender()
	c.receiver()
}

// Closed reports that Close was called.
func (c *Channel) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closed
}

// Queued is the number of waiting batches and their payload. Any goroutine.
func (c *Channel) Queued() (batches int, bytes int64) { return int(c.queued.Load()), c.bytes.Load() }
