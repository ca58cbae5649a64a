package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// dialFunc connects to an address, with TLS where that is configured.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// connections are those of one client. They tell a broker that is slow to fail from one that answers: a host that froze, or whose cable
// was pulled, refuses nothing, so the client waits for it until its own limit, which has to be long enough for the largest answer over
// the slowest line. Safe for concurrent use.
type connections struct {
	dialTo dialFunc
	began  time.Time

	mu   sync.Mutex
	open map[*connection]struct{}
	// shut has the addresses that are not to be dialled before a time.
	shut map[string]time.Time
}

// connection is one of them, from the first attempt to connect on.
type connection struct {
	net.Conn // nil while it is dialled
	of       *connections
	address  string
	// asked is when the other side was first expected to say something and has not since, in nanoseconds after of.began; 0 when nothing
	// is expected. An answer to one of several requests under way counts for all of them.
	asked atomic.Int64
	// abandon ends the attempt to connect.
	abandon context.CancelFunc
}

// errSilent marks a broker that others no longer count as one: the client is not to wait for it.
var errSilent = fmt.Errorf("it answers nothing, and other brokers have taken its place: %w", os.ErrDeadlineExceeded)

func newConnections(dialTo dialFunc) *connections {
	return &connections{dialTo: dialTo, began: time.Now(), open: make(map[*connection]struct{}), shut: make(map[string]time.Time)}
}

// dial is the client's dialer.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made := &connection{of: c, address: address, abandon: cancel}
	if !c.begin(made) {
		return nil, silent(network)
	}
	conn, err := c.dialTo(ctx, network, address)
	return c.dialled(made, conn, network, err)
}

// silent is an error that makes the client turn to another broker at once.
func silent(network string) error { return &net.OpError{Op: "dial", Net: network, Err: errSilent} }

// begin enters an attempt to connect, unless the address is shut.
func (c *connections) begin(made *connection) bool {
	made.expect()
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.shut[made.address]) {
		return false
	}
	c.open[made] = struct{}{}
	return true
}

// dialled ends the attempt. It may have been abandoned while it succeeded.
func (c *connections) dialled(made *connection, conn net.Conn, network string, err error) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, wanted := c.open[made]
	switch {
	case !wanted:
		if err == nil {
			_ = conn.Close() // nothing was written to it
		}
		return nil, silent(network)
	case err != nil:
		delete(c.open, made)
		return nil, err
	default:
		made.Conn, made.abandon = conn, nil
		made.asked.Store(0)
		return made, nil
	}
}

// silentFor lists the addresses with a connection on which an answer has been due for longer than d.
func (c *connections) silentFor(d time.Duration) []string {
	var all []string
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if conn.silentFor(d) {
			all = append(all, conn.address)
		}
	}
	return all
}

func (c *connection) silentFor(d time.Duration) bool {
	asked := c.asked.Load()
	return asked != 0 && time.Since(c.of.began) >= time.Duration(asked)+d
}

// drop ends everything that waits for those addresses and lets nobody dial them for some time.
func (c *connections) drop(addresses []string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, address := range addresses {
		c.shut[address] = until
	}
	for conn := range c.open {
		if !time.Now().Before(c.shut[conn.address]) {
			continue
		}
		delete(c.open, conn)
		if conn.Conn == nil {
			conn.abandon()
			continue
		}
		_ = conn.Conn.Close() // it does not block, and whoever reads from it learns of it
	}
}

// reopen lets the address be dialled again.
func (c *connections) reopen(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.shut, address)
}

// anyShut reports that some address may not be dialled, and forgets those whose time is over.
func (c *connections) anyShut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for address, until := range c.shut {
		if !time.Now().Before(until) {
			delete(c.shut, address)
		}
	}
	return len(c.shut) > 0
}

func (c *connection) expect() { c.asked.CompareAndSwap(0, max(int64(time.Since(c.of.began)), 1)) }

// Write implements [net.Conn].
func (c *connection) Write(b []byte) (int, error) {
	c.expect()
	return c.Conn.Write(b) //nolint:wrapcheck // the client looks at what the connection says
}

// Read implements [net.Conn].
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.asked.Store(0)
	}
	return n, err //nolint:wrapcheck // as above
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	if err := c.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err //nolint:wrapcheck // as above
	}
	return nil
}
