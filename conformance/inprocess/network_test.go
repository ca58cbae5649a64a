package inprocess_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/inprocess"
)

// hello is a server that says hello.
func hello(t *testing.T) (*inprocess.Network, *http.Client) {
	t.Helper()
	n := inprocess.NewNetwork()
	n.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	return n, n.Client()
}

func post(ctx context.Context, t *testing.T, c *http.Client) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://anywhere/", nil) // which no client sends again by itself
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestAClientTalksToTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, c := hello(t)
		for range 3 {
			if body, err := post(t.Context(), t, c); body != "hello" || err != nil {
				t.Fatalf("%q, %v", body, err)
			}
		}
		n.Close()
		n.Close()
		if _, err := post(t.Context(), t, c); err == nil {
			t.Error("a closed network answered")
		}
	})
}

func TestAStalledNetworkHangsUntilItIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, c := hello(t)
		defer n.Close()
		n.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := post(ctx, t, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a stalled network answered with %v", err)
		}
		began := time.Now()
		time.AfterFunc(time.Hour, n.Resume)
		if body, err := post(t.Context(), t, c); body != "hello" || err != nil {
			t.Fatalf("%q, %v", body, err)
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("the answer came after %s", took)
		}
	})
}

func TestCallsFailAsOftenAsTheyAreTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, c := hello(t)
		defer n.Close()
		n.Fail(2)
		for i := range 4 {
			if _, err := post(t.Context(), t, c); (err != nil) != (i < 2) {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

func TestDroppedConnectionsBreakAndNewOnesDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := inprocess.NewNetwork()
		defer n.Close()
		accepted := make(chan error, 1)
		go func() {
			conn, err := n.Listener().Accept()
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			accepted <- err
		}()
		conn, err := n.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n.Drop()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the client's end answers %v", err)
		}
		if err := <-accepted; err == nil {
			t.Error("the server's end answers")
		}
		if _, err := n.Dial(t.Context(), "", ""); err != nil {
			t.Errorf("a new connection: %v", err)
		}
	})
}

func TestASoundConnectionIsNotTroubled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, _ := hello(t)
		defer n.Close()
		c := &http.Client{Transport: &http.Transport{DialContext: n.DialSound}}
		defer c.CloseIdleConnections()
		n.Stall()
		n.Fail(1)
		for range 2 {
			if body, err := post(t.Context(), t, c); body != "hello" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
			n.Drop()
		}
	})
}

// The deadlines of a client's connection hold while the network is stalled.
func TestDeadlinesPassInAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, _ := hello(t)
		defer n.Close()
		conn, err := n.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		n.Stall()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // a byte may have been on its way
			if _, err := conn.Write([]byte("x")); i == 1 && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("write answers %v", err)
			}
		}
	})
}

// A server on the loopback interface hangs and loses connections like one that is part of the network.
func TestAServerElsewhereIsForwardedTo(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer elsewhere.Close()
	n := inprocess.NewNetwork()
	n.Forward(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", elsewhere.Listener.Addr().String())
	})
	c := n.Client()
	answers := func() {
		t.Helper()
		if body, err := post(t.Context(), t, c); body != "hello" || err != nil {
			t.Fatalf("%q, %v", body, err)
		}
	}
	answers()
	n.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := post(ctx, t, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it hung it answered %v", err)
	}
	n.Resume()
	answers()
	n.Fail(1)
	if _, err := post(t.Context(), t, c); err == nil {
		t.Error("a call that was to fail did not")
	}
	answers()
	n.Close() // waits for what was joined
	if _, err := post(t.Context(), t, c); err == nil {
		t.Error("a closed network answered")
	}
}

func TestAConnectionToAServerThatIsNotThereEnds(t *testing.T) {
	t.Parallel()
	n := inprocess.NewNetwork()
	defer n.Close()
	n.Forward(func(context.Context) (net.Conn, error) { return nil, errors.New("nobody is there") })
	if _, err := post(t.Context(), t, n.Client()); err == nil {
		t.Error("a server that is not there answered")
	}
}

// A heartbeat beside a request: the one that has to wait must let the bubble's clock go on.
func TestTwoWritersOfOneConnectionDoNotStopTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := inprocess.NewNetwork()
		defer n.Close()
		client, err := n.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		server, err := n.Listener().Accept()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				_, err := client.Write([]byte("beat"))
				done <- err
			}()
		}
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		if _, err := io.ReadFull(server, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenConnectionsAreThoseThatWhoeverDialledHasNotClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, c := hello(t)
		defer n.Close()
		if _, err := post(t.Context(), t, c); err != nil {
			t.Fatal(err)
		}
		if _, err := n.DialSound(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		if got := n.Open(); got != 0 {
			t.Errorf("%d are open, of the network's client and of the backend's own", got)
		}
		conn, err := n.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Open(); got != 1 {
			t.Errorf("%d are open, want 1", got)
		}
		n.Drop() // which does not close it for the client
		for range 2 {
			_ = conn.Close()
		}
		if got := n.Open(); got != 0 {
			t.Errorf("%d are open after it was closed", got)
		}
	})
}
