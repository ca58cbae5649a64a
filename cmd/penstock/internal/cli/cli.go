package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/catalog"
)

// Exit codes.
const (
	exitOK        = 0
	exitFailure   = 1
	exitBadInput  = 2 // job file or command line
	exitAbandoned = 130
)

// Process is what a command runs in.
type Process struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Lookup         func(name string) (string, bool) // environment variables
	Signals        <-chan os.Signal                 // interrupt and terminate
	Now            func() time.Time                 // tells a second signal from an echo of the first; nil is time.Now
	OutColumns     int                              // width of the terminal behind Stdout, 0 when it is none
	ErrColumns     int                              // the same for Stderr
	Executable     func() (string, error)           // path of this program, to start it again
	Environment    []string                         // of programs started; nil is that of this process
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, p Process) int {
	if p.Now == nil {
		p.Now = time.Now
	}
	c := &command{Process: p, catalog: catalog.Shipped(p.Stdout)}
	root := c.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		if e.err != nil {
			fmt.Fprintf(p.Stderr, "%v\n", e.err)
		}
		return e.code
	}
	// What cobra itself finds is wrong with the command line.
	fmt.Fprintf(p.Stderr, "penstock: %v\nSee penstock --help.\n", err)
	return exitBadInput
}

type command struct {
	Process
	catalog catalog.Catalog
}

// exitError ends the command with a code; a nil err says that everything was told already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func failed(err error) error { return &exitError{exitFailure, err} }

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "penstock",
		Short: "Brings data out of Kafka and other systems, exactly once",
		Long: `Penstock reads from a source, writes to a sink, and keeps its place in checkpoints, so that a job which is
stopped, killed or moved goes on where it was.

Try it:     penstock demo
Write a job file, then:
            penstock validate job.yaml
            penstock run job.yaml`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(c.runCommand(), c.validateCommand(), c.checkpointsCommand(), c.connectorsCommand(), c.devCommand(), c.demoCommand(), c.newCommand(), c.versionCommand())
	return root
}
