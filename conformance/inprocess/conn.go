package inprocess

import (
	"net"
	"sync"
)

// turns lets one Write at a time through. net.Pipe does that with a lock, and a bubble whose goroutines wait for a lock stands still: its clock
// does not move, and it is not told that it hangs.
type turns struct {
	net.Conn
	turn chan struct{}
}

func inTurn(c net.Conn) net.Conn { return turns{c, make(chan struct{}, 1)} }

func (c turns) Write(b []byte) (int, error) {
	c.turn <- struct{}{} // a connection that is closed, or whose time is over, ends the write that has it
	defer func() { <-c.turn }()
	return c.Conn.Write(b)
}

// lent is a client's end, and counted until the client has closed it.
type lent struct {
	net.Conn
	network *Network
	once    sync.Once
}

// lend counts a client's end; those of the backend's own are none.
func (n *Network) lend(client net.Conn, sound bool) net.Conn {
	client = inTurn(client)
	if sound {
		return client
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.lent++
	return &lent{Conn: client, network: n}
}

func (c *lent) giveBack() {
	c.once.Do(func() {
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		c.network.mu.lent--
	})
}

// Close implements [net.Conn].
func (c *lent) Close() error {
	c.giveBack()
	return c.Conn.Close()
}

// Open is how many connections of [Network.Dial] were not closed by whoever dialled them. Those of [Network.Client] and
// [Network.DialKept] are the backend's own.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.lent
}
