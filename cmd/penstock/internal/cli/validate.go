package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/jobfile"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
)

func (c *command) validateCommand() *cobra.Command {
	var overrides []string
	cmd := &cobra.Command{
		Use: "validate FILE", Short: "Check a job file and list everything that is wrong with it",
		Long: "Validate reads a job file and lists all problems, one a line, in the order of the file. It connects to nothing.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := c.load(args[0], overrides)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.Stdout, "%s: job %s is fine: %s to %s\n", args[0], file.Job.Name, file.Source.Name, file.Sink.Name)
			return err
		},
	}
	overridesFlag(cmd, &overrides)
	return cmd
}

func overridesFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringArrayVar(into, "set", nil, "override a value of the job file, for example source.kafka.start=latest; may be repeated")
}

// load reads a job file. What is wrong with it is printed, and the error only carries the exit code.
func (c *command) load(path string, overrides []string) (*jobfile.File, error) {
	file, err := jobfile.Load(jobfile.Request{Path: path, Overrides: overrides, Lookup: c.Lookup, Catalog: c.catalog})
	if err == nil {
		return file, nil
	}
	problems, ok := errors.AsType[option.Problems](err)
	if !ok {
		return nil, &exitError{exitBadInput, err}
	}
	for _, p := range problems {
		fmt.Fprintln(c.Stderr, p)
	}
	fmt.Fprintln(c.Stderr, human.Plural(len(problems), "problem"))
	return nil, &exitError{code: exitBadInput}
}
