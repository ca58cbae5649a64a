package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// commands by name. Those behind the dash are what the program starts itself as.
var commands = map[string]func(context.Context, []string) error{
	"table":   table,
	"codecs":  codecs,
	"restart": restart,
	"-broker": serve,
	"-read":   read,
	"-note":   note,
}

var errUsage = errors.New("usage: peers table|codecs|restart [flags]")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || commands[args[0]] == nil {
		return errUsage
	}
	return commands[args[0]](ctx, args[1:])
}
