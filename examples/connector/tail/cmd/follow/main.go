// Command follow reads the topics of a server like that of package tail into files, each message once. Without an address it brings its own server,
// reads what that holds, and ends:
//
//	go run ./examples/connector/tail/cmd/follow
//
// With one it follows that until Ctrl-C, and started again it goes on where it was:
//
//	go run ./examples/connector/tail/cmd/follow -addr 127.0.0.1:7000 -dir followed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/examples/connector/tail"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // the second one ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

// run returns when the job has ended: with nil also when ctx was cancelled, behind a savepoint.
func run(ctx context.Context, args []string, out io.Writer) error {
	source := &tail.Source{}
	flags := flag.NewFlagSet("follow", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&source.Addr, "addr", "", "`host:port` of the server; without it, that of one in this process")
	flags.BoolVar(&source.Once, "once", false, "end at what is the end of each topic now")
	dir := flags.String("dir", "followed", "the `directory` for the messages and the job's state")
	interval := flags.Duration("interval", 5*time.Second, "how far the files may lag behind")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if source.Addr == "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer serve(sample(), listener)()
		source.Addr, source.Once = listener.Addr().String(), true
	}
	return engine.Run(ctx, engine.Job{
		Name:        "follow",
		Parallelism: 2,
		Source:      engine.From(source),
		Sink:        file.Sink{Path: filepath.Join(*dir, "messages")},
		Checkpoint:  engine.Checkpoint{Dir: filepath.Join(*dir, "state"), Interval: *interval},
		Listener: engine.Listener{
			CheckpointDone: func(m *protocol.Manifest, _ time.Duration) {
				fmt.Fprintf(out, "checkpoint %d: %d messages\n", m.ID, m.Records)
			},
			Restarting: func(what string, err error, after time.Duration) {
				fmt.Fprintf(out, "%s failed, starting it again in %s: %v\n", what, after, err)
			},
		},
	})
}

// sample is a server with something to read.
func sample() *tail.Server {
	server := tail.NewServer()
	for i := range 1000 {
		server.Publish([]string{"chat", "alarms", "metrics"}[i%3], fmt.Sprintf("message %d", i))
	}
	return server
}

// serve answers connections until what it returns is called; by then those of the source are closed.
func serve(server *tail.Server, listener net.Listener) (end func()) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener)
	}()
	return func() {
		_ = listener.Close()
		<-served
	}
}
