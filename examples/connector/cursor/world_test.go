package cursor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// world is a server, a source of it, and virtual time.
type world struct {
	t      *testing.T
	server *Server
	source *Source
	begin  time.Time
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := inprocess.NewNetwork()
		defer network.Close()
		w := &world{t: t, server: NewServer("secret"), begin: time.Now()}
		network.Serve(w.server)
		w.source = &Source{URL: "http://api.example.com", Token: "secret", HTTP: network.Client()}
		test(t, w)
	})
}

// add appends events whose bodies are numbers that go on from what is there.
func (w *world) add(stream string, events int) {
	w.server.Add(stream)
	from := w.server.streams[stream].made
	for i := range events {
		w.server.Add(stream, strconv.Itoa(from+i+1))
	}
}

func (w *world) fetcher(splits ...Split) *fetcher {
	w.t.Helper()
	f := &fetcher{
		api: w.source.api(sdk.DiscardMetrics), log: slog.New(slog.DiscardHandler), once: w.source.Once,
		poll: DefaultPoll, giveUp: DefaultGiveUp,
	}
	if err := f.HandleSplits(base.Change[Split]{Added: splits}); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// fetch fetches until something comes, and answers it.
func (w *world) fetch(f *fetcher) (base.Chunk[element], error) {
	for {
		got, err := f.Fetch(w.t.Context())
		if err != nil || len(got.Chunks) > 0 {
			return append(got.Chunks, base.Chunk[element]{})[0], err
		}
	}
}

// want fetches the events from..to of a stream, and fails unless exactly these come.
func (w *world) want(f *fetcher, stream string, from, to int) (last Split) {
	w.t.Helper()
	last.Stream = stream
	for next := from; next <= to; {
		c, err := w.fetch(f)
		if err != nil {
			w.t.Fatalf("before event %d: %v", next, err)
		}
		for _, e := range c.Elements {
			if c.Split != sdk.SplitID(stream) || e.Body != strconv.Itoa(next) || next > to {
				w.t.Fatalf("event %q of %s came where %d of %d..%d of %s was due", e.Body, c.Split, next, from, to, stream)
			}
			next++
			last.Place = e.after
		}
	}
	return last
}

// gaps are the times between the calls that the server saw, from the beginning of the test.
func (w *world) gaps() (gaps []time.Duration) {
	before := w.begin
	for _, at := range w.server.Calls() {
		gaps = append(gaps, at.Sub(before))
		before = at
	}
	return gaps
}

// fails fetches until that fails, and fails unless the error is the sentinel and has all the texts.
func (w *world) fails(f *fetcher, sentinel error, texts ...string) {
	w.t.Helper()
	c, err := w.fetch(f)
	if !errors.Is(err, sentinel) || len(c.Elements) > 0 {
		w.t.Fatalf("%d events came, error %v, want %v", len(c.Elements), err, sentinel)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			w.t.Errorf("the error %q does not say %q", err, text)
		}
	}
}

// interrupted is a Fetch that is cancelled after a while, as for an added split.
func (w *world) interrupted(f *fetcher, after time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer time.AfterFunc(after, func() { cancel(sdk.ErrWakeup) }).Stop()
	if got, err := f.Fetch(ctx); !errors.Is(err, sdk.ErrWakeup) || len(got.Chunks) > 0 {
		w.t.Fatalf("a fetch that was woken up answered %+v, error %v", got, err)
	}
}

// seconds makes gaps that are easy to write down.
func seconds(gaps ...float64) (list []time.Duration) {
	for _, g := range gaps {
		list = append(list, time.Duration(g*float64(time.Second)))
	}
	return list
}

func (w *world) wantGaps(want []time.Duration) {
	w.t.Helper()
	if got := w.gaps(); !slices.Equal(got, want) {
		w.t.Errorf("the server was called after %s, want %s", fmt.Sprint(got), fmt.Sprint(want))
	}
}
