// Command penstock runs jobs that bring data out of Kafka and other systems, exactly once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/cli"
)

func main() {
	// Two signals, as the second one means another thing than the first; they wait here until somebody listens.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Signals: signals,
		OutColumns: cli.Columns(os.Stdout), ErrColumns: cli.Columns(os.Stderr), Executable: os.Executable,
	}))
}
