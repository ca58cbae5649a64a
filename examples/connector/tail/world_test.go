package tail

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// world is a server, a source of it, and virtual time.
type world struct {
	t       *testing.T
	network *inprocess.Network
	server  *Server
	source  *Source
	acks    *acks
	dials   atomic.Int64
	away    atomic.Bool // the server cannot be reached
}

var errAway = errors.New("nobody answers")

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.dials.Add(1)
	if w.away.Load() {
		return nil, errAway
	}
	return w.network.Dial(ctx, network, address)
}

// bubble runs a test in virtual time. What is left running at its end blocks the bubble, and fails the test.
func bubble(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: inprocess.NewNetwork(), server: NewServer(), acks: &acks{}}
		served := make(chan struct{})
		go func() {
			defer close(served)
			w.server.Serve(w.network.Listener())
		}()
		defer func() {
			w.network.Close()
			<-served
		}()
		w.source = &Source{Addr: "server:1", Dial: w.dial}
		test(t, w)
	})
}

// publish adds messages whose texts are their numbers.
func (w *world) publish(topic string, messages int) {
	w.server.Publish(topic)
	from := w.server.topics[topic].next()
	for i := range int64(messages) {
		w.server.Publish(topic, strconv.FormatInt(from+i, 10))
	}
}

// fetcher follows splits until the test ends.
func (w *world) fetcher(buffer int, splits ...Split) *fetcher {
	w.t.Helper()
	f := &fetcher{
		buffer: buffer, receivers: map[sdk.SplitID]*receiver{},
		shared: shared{
			source: w.source, acks: w.acks, log: slog.New(slog.DiscardHandler), giveUp: DefaultGiveUp,
			reconnects: sdk.DiscardMetrics.Counter("", "", ""), bell: make(chan struct{}, 1), failed: make(chan error, 1),
		},
	}
	w.change(f, base.Change[Split]{Added: splits})
	return f
}

func (w *world) change(f *fetcher, c base.Change[Split]) {
	w.t.Helper()
	if err := f.HandleSplits(c); err != nil {
		w.t.Fatal(err)
	}
}

// want fetches the messages from..to of a topic, and fails unless exactly these come, and nothing of any other topic.
func (w *world) want(f *fetcher, topic string, from, to int64) {
	w.t.Helper()
	for next := from; next <= to; {
		got, err := f.Fetch(w.t.Context())
		if err != nil {
			w.t.Fatalf("before message %d: %v", next, err)
		}
		for _, c := range got.Chunks {
			for _, m := range c.Elements {
				if c.Split != sdk.SplitID(topic) || m.number != next || m.text != strconv.FormatInt(next, 10) || next > to {
					w.t.Fatalf("message %d of %s, %q, came where %d of %d..%d of %s was due", m.number, c.Split, m.text, next, from, to, topic)
				}
				next++
			}
		}
	}
}

// fails fetches until that fails, and fails unless the error is the sentinel and has all the texts.
func (w *world) fails(f *fetcher, sentinel error, texts ...string) {
	w.t.Helper()
	var err error
	for err == nil {
		_, err = f.Fetch(w.t.Context())
	}
	if !errors.Is(err, sentinel) {
		w.t.Fatalf("error %v, want %v", err, sentinel)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			w.t.Errorf("the error %q does not say %q", err, text)
		}
	}
}

func (w *world) close(f *fetcher) {
	w.t.Helper()
	if err := f.Close(); err != nil {
		w.t.Error(err)
	}
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of the bubble
}
