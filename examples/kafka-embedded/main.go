// Command kafka-embedded is a service that reads Kafka with the engine inside it. It adds up what each driver of the sample
// rides earned, and keeps the sums in a file: exactly once, whatever kills it in between.
//
// Run it against the sample broker, in two terminals:
//
//	penstock dev kafka --rate 1000
//	go run ./examples/kafka-embedded
//
// and look at takings/takings.json. Ctrl-C takes a savepoint and ends; a second Ctrl-C ends at once. Kill it with kill -9 as often as
// you like and start it again: it goes on where the file is, and no ride is counted twice or left out. With --until-end, and a --dir
// of its own, it adds up what the topic holds now and ends by itself.
//
// # How it is made
//
//   - main.go is the program: flags, signals, and the [engine.Job].
//   - sink.go is the program's own sink. It takes part in checkpoints ([sdk.Committer]), which is what makes it exactly once: sums are
//     collected in memory, travel in the checkpoint, and are added to the ledger after the checkpoint completed.
//   - ledger.go stands for your database. All it has to offer is a transaction that adds sums and, with them, notes which
//     checkpoint they came from; asked again it finds the note and adds nothing. With SQL that is an UPDATE and an upsert
//     into a table (job, task, checkpoint) before one COMMIT.
//
// The state directory and the ledger belong together. With one of them from another time, the program refuses to start rather
// than count twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

// config is what the flags say.
type config struct {
	brokers     string
	topic       string
	dir         string
	parallelism int
	interval    time.Duration
	untilEnd    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one has its usual effect and ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "kafka-embedded:", err)
		os.Exit(1)
	}
}

// run returns when the job has ended: with nil also when ctx was cancelled, behind a savepoint.
func run(ctx context.Context, args []string, out io.Writer) error {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	ledger, err := openLedger(filepath.Join(c.dir, "takings.json"))
	if err != nil {
		return err
	}
	source := &kafka.Source{Brokers: strings.Split(c.brokers, ","), Topics: []string{c.topic}}
	if c.untilEnd {
		source.Stop = kafka.Latest()
	}
	return engine.Run(ctx, engine.Job{
		Name:        "takings",
		Parallelism: c.parallelism,
		Source:      engine.From(source),
		Sink:        &sink{ledger: ledger},
		Checkpoint:  engine.Checkpoint{Dir: filepath.Join(c.dir, "state"), Interval: c.interval},
		// Tell people what happens. A service would also set Logger and Metrics; docs/en/embed.md shows how.
		Listener: engine.Listener{
			Restored: func(m *protocol.Manifest) {
				fmt.Fprintf(out, "going on from checkpoint %d\n", m.ID)
			},
			CheckpointDone: func(m *protocol.Manifest, _ time.Duration) {
				fmt.Fprintf(out, "checkpoint %d: %d records\n", m.ID, m.Records)
			},
			Restarting: func(what string, err error, after time.Duration) {
				fmt.Fprintf(out, "%s failed, starting it again in %s: %v\n", what, after, err)
			},
		},
	})
}

func parse(args []string, out io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("kafka-embedded", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&c.brokers, "brokers", "127.0.0.1:9092", "addresses, separated by commas")
	flags.StringVar(&c.topic, "topic", "rides", "the `name` of the topic to read")
	flags.StringVar(&c.dir, "dir", "takings", "the `directory` for the sums and the job's state")
	flags.IntVar(&c.parallelism, "parallelism", 2, "readers and sink tasks; it may change between runs")
	flags.DurationVar(&c.interval, "interval", 2*time.Second, "how far the sums may lag behind")
	flags.BoolVar(&c.untilEnd, "until-end", false, "end at what is the end of the topic now")
	return c, flags.Parse(args)
}
