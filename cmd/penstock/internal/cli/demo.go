package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/demo"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/progress"
)

func (c *command) demoCommand() *cobra.Command {
	config := demo.Config{}
	cmd := &cobra.Command{
		Use: "demo", Short: "See a job being killed half way, and every record arrive once",
		Long: `Demo starts an embedded broker with 50,000 sample records, reads them into files, kills the job with SIGKILL half way,
starts it again, and checks the files: every record once, in order per partition. It takes a few seconds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.demo(cmd.Context(), config)
		},
	}
	cmd.Flags().StringVar(&config.Dir, "dir", "demo", "directory for job file, state and output")
	cmd.Flags().Int64Var(&config.Records, "records", 0, "")
	_ = cmd.Flags().MarkHidden("records")
	return cmd
}

func (c *command) demo(ctx context.Context, config demo.Config) error {
	program, err := c.Executable()
	if err != nil {
		return failed(fmt.Errorf("penstock: the demo starts this program again, but cannot find it: %w", err))
	}
	config.Program, config.Environment = program, c.Environment
	config.Screen = progress.NewScreen(c.Stdout, c.OutColumns)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- demo.Run(ctx, config) }()
	for {
		select {
		case <-c.Signals:
			cancel(errStopped)
		case err := <-done:
			if errors.Is(err, errStopped) {
				return &exitError{code: exitAbandoned}
			}
			if err != nil {
				return failed(fmt.Errorf("penstock: demo: %w", err))
			}
			return nil
		}
	}
}
