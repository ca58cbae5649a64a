package kafka

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// cold is a network on which hosts freeze: they take connections and what is written, and say nothing.
type cold struct {
	mu     sync.Mutex
	frozen map[string]chan struct{} // closed when it thaws
	closed map[string]int           // connections, by address, since it froze
}

// frozenConn is a connection that may freeze, with deadlines of its own.
type frozenConn struct {
	net.Conn
	of      *cold
	address string
	closed  chan struct{}
	once    sync.Once

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline changes
}

func (c *cold) freeze(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		c.frozen = make(map[string]chan struct{})
	}
	c.frozen[address] = make(chan struct{})
	c.closed = make(map[string]int)
}

func (c *cold) closes(address string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed[address]
}

func (c *cold) thaw(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.frozen[address])
	delete(c.frozen, address)
}

func (c *cold) thawed(address string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen[address]
}

func (c *cold) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &frozenConn{Conn: conn, of: c, address: address, closed: make(chan struct{}), moved: make(chan struct{})}, nil
}

func (f *frozenConn) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	for {
		thawed := f.of.thawed(f.address)
		if thawed == nil || err != nil && n == 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		f.mu.Lock()
		deadline, moved := f.deadline, f.moved
		f.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			timer := time.NewTimer(time.Until(deadline))
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-thawed:
		case <-moved:
		case <-f.closed:
			return 0, net.ErrClosed
		case <-late:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

func (f *frozenConn) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	f.deadline = t
	close(f.moved)
	f.moved = make(chan struct{})
	f.mu.Unlock()
	return f.Conn.SetReadDeadline(t)
}

func (f *frozenConn) Close() error {
	f.once.Do(func() {
		close(f.closed)
		f.of.mu.Lock()
		defer f.of.mu.Unlock()
		if f.of.closed != nil {
			f.of.closed[f.address]++
		}
	})
	return f.Conn.Close()
}

// A leader freezes as a host does: its connections stay, and nothing comes. The client's own limit is above five seconds, and each
// of its questions to the frozen broker takes as long again.
func TestALeaderThatFreezesIsLeftAsSoonAsThereIsANewOne(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 1}})
	network := new(cold)
	s := sourceOf(b, "orders")
	s.Client = append(s.Client, kgo.Dialer(network.dial))
	produce(t, b, numbered("orders", 0, 0, 1)...)
	u := read(t, s, splitsOf(t, s)...)
	u.records(1)

	leader := b.Cluster().PartitionInfo("orders", 0).Leader
	frozen := b.Addrs()[leader]
	network.freeze(frozen)
	if err := sleep(t.Context(), time.Second); err != nil { // the election
		t.Fatal(err)
	}
	if err := b.Cluster().MoveTopicPartition("orders", 0, (leader+1)%3); err != nil {
		t.Fatal(err)
	}
	moved := time.Now()
	produce(t, b, numbered("orders", 0, 1, 1)...)
	u.records(2)
	took := time.Since(moved)
	t.Logf("the first record of the new leader came %s after the move", took)
	if took > 3*time.Second {
		t.Errorf("that is too long: the client waited for the frozen broker")
	}

	network.thaw(frozen)
	if err := b.Cluster().MoveTopicPartition("orders", 0, leader); err != nil { // and back, to one that was left alone
		t.Fatal(err)
	}
	produce(t, b, numbered("orders", 0, 2, 1)...)
	if got := offsetsOf(u.records(3)); got[2] != 2 {
		t.Errorf("read %v", got)
	}
}

// While nobody else leads, a broker that does not answer is waited for: it may only be slow.
func TestASlowBrokerIsNotLeft(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 1}})
	network := new(cold)
	s := sourceOf(b, "orders")
	s.Client = append(s.Client, kgo.Dialer(network.dial))
	produce(t, b, numbered("orders", 0, 0, 1)...)
	u := read(t, s, splitsOf(t, s)...)
	u.records(1)
	slow := b.Addrs()[b.Cluster().PartitionInfo("orders", 0).Leader]
	network.freeze(slow)
	if err := sleep(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if n := network.closes(slow); n != 0 {
		t.Errorf("%d connections to it were closed", n)
	}
	network.thaw(slow)
	produce(t, b, numbered("orders", 0, 1, 1)...)
	u.records(2)
}
