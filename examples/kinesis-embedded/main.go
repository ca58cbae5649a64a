// Command kinesis-embedded reads a Kinesis stream with the engine inside the program, while the stream is resharded under it. It needs no
// account: the stream is a double of the service in the same process (package kinesistest).
//
//	go run ./examples/kinesis-embedded
//
// Records of forty keys are written while the stream goes from 2 shards to 4, to 1 and to 3. The sink checks what a reader has to get right:
// each record once, and those of one key in their order, although they come from five generations of shards.
//
// For a stream of yours leave Endpoint and Credentials out of the source.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	checked, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kinesis-embedded:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
	fmt.Printf("%d records, each once and in the order of its key\n", checked)
}

const (
	stream = "orders"
	keys   = 40
	rounds = 25 // records of each key for each number of shards
)

// run returns how many records the sink has checked.
func run(ctx context.Context) (int, error) {
	server, err := kinesistest.New(kinesistest.Options{})
	if err != nil {
		return 0, err
	}
	defer server.Close()
	if err := server.CreateStream(stream, 2); err != nil {
		return 0, err
	}
	written := 0
	for _, shards := range []int{4, 1, 3} {
		if err := put(server, &written); err != nil {
			return 0, err
		}
		if err := server.Reshard(stream, shards); err != nil {
			return 0, err
		}
	}
	if err := put(server, &written); err != nil {
		return 0, err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	check := &checker{want: written, done: stop, next: make(map[string]int)}
	err = engine.Run(ctx, engine.Job{ // returns after a savepoint, when the checker has seen everything
		Name:        "orders",
		Parallelism: 2,
		Source: engine.From(&kinesis.Source{
			Stream:      stream,
			Region:      "eu-west-1",
			Endpoint:    server.Endpoint(),
			Credentials: kinesis.Credentials{AccessKeyID: "any", SecretAccessKey: "any"},
		}),
		Sink:       check,
		Checkpoint: engine.Checkpoint{Interval: time.Minute}, // shards that end ask for one of their own; Dir: "state" would survive the process
	})
	if err != nil {
		return 0, err
	}
	return check.result()
}

// put writes the next records of each key.
func put(server *kinesistest.Server, written *int) error {
	for range rounds * keys {
		number, key := *written/keys, "customer-"+strconv.Itoa(*written%keys)
		if _, err := server.Put(stream, kinesistest.Record{PartitionKey: key, Data: []byte(strconv.Itoa(number))}); err != nil {
			return err
		}
		*written++
	}
	return nil
}

// checker is a sink that compares each record with what has to come next for its key. Its tasks share it, so there is a lock.
type checker struct {
	want int
	done func()

	mu   sync.Mutex
	seen int
	next map[string]int
	err  error
}

func (c *checker) Name() string { return "checker" }

func (c *checker) NewWriter(sdk.WriterContext) (sdk.Writer, error) { return &writer{c}, nil }

func (c *checker) result() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.seen != c.want {
		c.err = fmt.Errorf("%d records of %d", c.seen, c.want)
	}
	return c.seen, c.err
}

func (c *checker) take(key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if want := strconv.Itoa(c.next[key]); value != want && c.err == nil {
		c.err = fmt.Errorf("key %s: record %s came where %s was due", key, value, want)
	}
	c.next[key]++
	if c.seen++; c.seen == c.want {
		c.done()
	}
}

type writer struct{ c *checker }

func (w *writer) Open(context.Context) error { return nil }

func (w *writer) Write(_ context.Context, batch *sdk.Batch) error {
	for rec := range batch.All() {
		w.c.take(string(rec.Key), string(rec.Value))
	}
	return nil
}

func (w *writer) Flush(context.Context) error { return nil }
func (w *writer) Close(context.Context) error { return nil }
