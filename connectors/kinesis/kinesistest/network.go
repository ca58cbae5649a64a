package kinesistest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// pipes is a network inside the process: nothing of it is a system call, so a testing/synctest bubble can tell when all of it waits.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})} }

// Listen is of Network: there is one listener.
func (p *pipes) Listen(_, _ string) (net.Listener, error) { return p, nil }

// Accept is of net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is of net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is of net.Listener.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

// DialContext is of Network.
func (p *pipes) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.waiting <- server:
		return client, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "kinesistest.invalid:80" }

// detached sends requests with bodies of their own. The SDK closes a body as soon as the answer is there. When the transport has not yet seen
// the end of the body, which it looks for after the last byte, it then gives up the connection in the middle of the answer.
type detached struct{ *http.Transport }

// RoundTrip is of http.RoundTripper.
func (d detached) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return d.Transport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return d.Transport.RoundTrip(own)
}
