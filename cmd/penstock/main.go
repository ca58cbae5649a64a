// Command penstock runs jobs that bring data out of Kafka and other systems, exactly once.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/cli"
)

// gcPercent lets the heap grow further between collections than Go's default of 100. A job's live heap is small, a few
// fetches, and what it allocates per second is large, so at the default a third of the processor time goes into collecting.
// The memory this costs is bounded by the same few fetches.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Two signals, as the second one means another thing than the first; they wait here until somebody listens.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Signals: signals,
		OutColumns: cli.Columns(os.Stdout), ErrColumns: cli.Columns(os.Stderr), Executable: os.Executable,
	}))
}
