package feed_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/penstock-dev/penstock/examples/connector/feed"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

// collect is a sink that ends the job when it has seen enough.
type collect struct {
	mu     sync.Mutex
	bodies map[string][]string
	left   int
	enough func()
}

func (c *collect) Name() string                                    { return "collect" }
func (c *collect) NewWriter(sdk.WriterContext) (sdk.Writer, error) { return c, nil }
func (c *collect) Open(context.Context) error                      { return nil }
func (c *collect) Flush(context.Context) error                     { return nil }
func (c *collect) Close(context.Context) error                     { return nil }

func (c *collect) Write(_ context.Context, b *sdk.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for rec := range b.All() {
		c.bodies[string(rec.Split)] = append(c.bodies[string(rec.Split)], string(rec.Value))
		if c.left--; c.left == 0 {
			c.enough()
		}
	}
	return nil
}

func TestFeedsAreReadInOrderAndGoOnAfterARestart(t *testing.T) {
	server := feed.NewServer("news", "weather", "empty")
	const items = 250
	for i := range items {
		server.Add("news", fmt.Sprint("news ", i))
		server.Add("weather", fmt.Sprint("weather ", i))
	}
	web := httptest.NewServer(server)
	defer web.Close()
	state := t.TempDir()
	ingest := func(want int) map[string][]string {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := &collect{bodies: map[string][]string{}, left: want, enough: stop}
		err := engine.Run(ctx, engine.Job{
			Name: "feeds", Parallelism: 2, Source: engine.From(&feed.Source{URL: web.URL, HTTP: web.Client()}), Sink: c,
			Checkpoint: engine.Checkpoint{Dir: state},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c.bodies
	}
	first := ingest(2 * items)
	for _, name := range []string{"news", "weather"} {
		for i, body := range first[name] {
			if want := fmt.Sprint(name, " ", i); body != want {
				t.Fatalf("item %d of %s is %q, want %q", i, name, body, want)
			}
		}
	}
	server.Add("weather", "storm")
	if second := ingest(1); len(second) != 1 || second["weather"][0] != "storm" {
		t.Errorf("the second run read %v, want only what is new", second)
	}
}
