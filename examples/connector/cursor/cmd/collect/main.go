// Command collect reads an API of the kind that package cursor is about into files, each event once. Without an address it brings its own server,
// which throttles and fails now and then:
//
//	go run ./examples/connector/cursor/cmd/collect
//
// With one it reads that, until Ctrl-C, and started again it goes on where it was. The token comes from the environment, where other users of
// the machine do not see it:
//
//	API_TOKEN=... go run ./examples/connector/cursor/cmd/collect -url https://api.example.com -dir collected
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/examples/connector/cursor"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // the second one ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "collect:", err)
		os.Exit(1)
	}
}

// run returns when the job has ended: with nil also when ctx was cancelled, behind a savepoint.
func run(ctx context.Context, args []string, out io.Writer) error {
	source := &cursor.Source{Token: cursor.Token(os.Getenv("API_TOKEN"))}
	flags := flag.NewFlagSet("collect", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&source.URL, "url", "", "the `address` of the API; without one, that of a server in this process")
	flags.BoolVar(&source.Once, "once", false, "end where nothing more follows")
	dir := flags.String("dir", "collected", "the `directory` for the events and the job's state")
	interval := flags.Duration("interval", 5*time.Second, "how far the files may lag behind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if source.URL == "" {
		address, end, err := sample(ctx)
		if err != nil {
			return err
		}
		defer end()
		source.URL, source.Token, source.Once = address, token, true
	}
	return engine.Run(ctx, engine.Job{
		Name:        "collect",
		Parallelism: 2,
		Source:      engine.From(source),
		Sink:        file.Sink{Path: filepath.Join(*dir, "events")},
		Checkpoint:  engine.Checkpoint{Dir: filepath.Join(*dir, "state"), Interval: *interval},
		Listener: engine.Listener{
			CheckpointDone: func(m *protocol.Manifest, _ time.Duration) {
				fmt.Fprintf(out, "checkpoint %d: %d events\n", m.ID, m.Records)
			},
			Restarting: func(what string, err error, after time.Duration) {
				fmt.Fprintf(out, "%s failed, starting it again in %s: %v\n", what, after, err)
			},
		},
	})
}

const token = "only-for-this-process"

// sample starts a server with something to read, which is not at its best. end ends it.
func sample(ctx context.Context) (address string, end func(), err error) {
	server := cursor.NewServer(token)
	for i := range 1000 {
		server.Add([]string{"logins", "orders", "refunds"}[i%3], fmt.Sprintf("event %d", i))
	}
	server.Refuse(1, http.StatusTooManyRequests, "1")
	server.Refuse(1, http.StatusBadGateway, "")
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = web.Serve(listener) // it ends with Close
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = web.Close()
		<-served
	}, nil
}
