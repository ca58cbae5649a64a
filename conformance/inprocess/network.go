package inprocess

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

// backlog is how many connections wait to be accepted.
const backlog = 64

var (
	errDropped = errors.New("connection dropped")
	errClosed  = errors.New("the network is closed")
)

// Network joins clients and one server. Its methods may be called from any goroutine.
type Network struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu struct {
		sync.Mutex
		resumed  chan struct{} // closed when nothing is held back
		fail     int
		conns    map[*conn]struct{}
		lent     int // connections that clients have not closed
		cleanups []func()
	}
}

// NewNetwork makes a network. Make it in the bubble in which it is used.
func NewNetwork() *Network {
	n := &Network{accept: make(chan net.Conn, backlog), closed: make(chan struct{})}
	n.mu.resumed = make(chan struct{})
	close(n.mu.resumed)
	n.mu.conns = map[*conn]struct{}{}
	return n
}

// Dial connects to the server, whatever the address. Whoever dials closes the connection; [Network.Open] counts those that are not.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) { return n.dial(ctx, false) }

// DialSound is Dial for the backend's own use, to append records: the connection neither hangs nor fails, and is not dropped.
func (n *Network) DialSound(ctx context.Context, _, _ string) (net.Conn, error) {
	return n.dial(ctx, true)
}

// DialKept is Dial for a client that the backend lends to sources and closes itself: [Network.Open] does not count the connection.
func (n *Network) DialKept(ctx context.Context, _, _ string) (net.Conn, error) {
	c, err := n.dial(ctx, false)
	if l, ok := c.(*lent); ok {
		l.giveBack()
	}
	return c, err
}

func (n *Network) dial(ctx context.Context, sound bool) (net.Conn, error) {
	client, server := net.Pipe()
	c := &conn{Conn: inTurn(server), network: n, sound: sound, gone: make(chan struct{})}
	n.mu.Lock()
	n.mu.conns[c] = struct{}{}
	n.mu.Unlock()
	select {
	case n.accept <- c:
	case <-n.closed:
	case <-ctx.Done():
		return nil, errors.Join(c.Close(), context.Cause(ctx))
	}
	// There may be room in a queue that nobody takes from any more. A network that is closed later breaks the connection, which it knows.
	select {
	case <-n.closed:
		return nil, errors.Join(c.Close(), errClosed)
	default:
		return n.lend(client, sound), nil
	}
}

// Client is an HTTP client of this network. What it keeps open is closed with the network.
func (n *Network) Client() *http.Client {
	transport := &http.Transport{DialContext: n.DialKept}
	n.atClose(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Serve answers HTTP requests until the network is closed.
func (n *Network) Serve(handler http.Handler) {
	server := &http.Server{Handler: handler} //nolint:gosec // nobody from outside can reach it
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(n.Listener()) // it ends with the listener
	}()
	n.atClose(func() {
		_ = server.Close()
		<-done
	})
}

func (n *Network) atClose(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cleanups = append(n.mu.cleanups, f)
}

// Listener is the server's end.
func (n *Network) Listener() net.Listener { return listener{n} }

// Stall holds back everything that clients and server send, until Resume.
func (n *Network) Stall() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.mu.resumed:
		n.mu.resumed = make(chan struct{})
	default:
	}
}

// Resume lets pass what was held back.
func (n *Network) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.mu.resumed:
	default:
		close(n.mu.resumed)
	}
}

// Fail breaks the connection of each of the next calls clients make, when what they sent arrives. It replaces what is left of an earlier Fail.
func (n *Network) Fail(calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.fail = calls
}

// Drop breaks all connections. New ones are accepted.
func (n *Network) Drop() { n.drop(false) }

func (n *Network) drop(sound bool) {
	n.mu.Lock()
	conns := slices.Collect(maps.Keys(n.mu.conns))
	n.mu.Unlock()
	for _, c := range conns {
		if sound || !c.sound {
			_ = c.Close()
		}
	}
}

// Close breaks everything and ends what was started with Serve.
func (n *Network) Close() {
	n.once.Do(func() {
		close(n.closed)
		n.Resume()
		n.drop(true)
		n.mu.Lock()
		cleanups := n.mu.cleanups
		n.mu.Unlock()
		for _, f := range cleanups {
			f()
		}
	})
}

// pass waits while the network is stalled.
func (n *Network) pass(c *conn) error {
	if c.sound {
		return nil
	}
	n.mu.Lock()
	resumed := n.mu.resumed
	n.mu.Unlock()
	select {
	case <-resumed:
		return nil
	case <-c.gone:
		return errDropped
	}
}

// fails takes one of the calls that are to fail.
func (n *Network) fails() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.fail <= 0 {
		return false
	}
	n.mu.fail--
	return true
}

func (n *Network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.conns, c)
}

// conn is the server's end of a connection. Gating this end leaves the deadlines of the client's end to net.Pipe.
type conn struct {
	net.Conn
	network *Network
	sound   bool
	gone    chan struct{}
	once    sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.network.pass(c); err != nil {
		return 0, err
	}
	k, err := c.Conn.Read(b)
	if err != nil {
		return k, err
	}
	if err := c.network.pass(c); err != nil {
		return 0, err
	}
	if !c.sound && c.network.fails() {
		return 0, errors.Join(errDropped, c.Close())
	}
	return k, nil
}

func (c *conn) Write(b []byte) (int, error) {
	if err := c.network.pass(c); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.network.forget(c)
	})
	return c.Conn.Close()
}

type listener struct{ network *Network }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.network.accept:
		return c, nil
	case <-l.network.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "inprocess" }
func (address) String() string  { return "inprocess:1" } // some servers tell clients where they are
