package inprocess

import (
	"context"
	"io"
	"net"
	"sync"
)

// Forward makes a server in another process the network's server, until the network is closed: each connection is joined to one of its own that
// dial makes. So a real server hangs and fails as well. What it brings comes by the clock of the wall, so there can be no bubble around it.
func (n *Network) Forward(dial func(context.Context) (net.Conn, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	var joined sync.WaitGroup
	joined.Go(func() {
		for {
			near, err := n.Listener().Accept()
			if err != nil {
				return
			}
			joined.Go(func() { join(ctx, near, dial) })
		}
	})
	n.atClose(func() {
		cancel()
		joined.Wait()
	})
}

// join carries what either end sends to the other one, until one of them is closed.
func join(ctx context.Context, near net.Conn, dial func(context.Context) (net.Conn, error)) {
	far, err := dial(ctx)
	if err != nil {
		_ = near.Close()
		return
	}
	var both sync.WaitGroup
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = near.Close(), far.Close()
	}
	both.Go(func() { carry(far, near) })
	both.Go(func() { carry(near, far) })
	both.Wait()
}
