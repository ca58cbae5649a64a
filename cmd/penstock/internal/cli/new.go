package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/scaffold"
)

func (c *command) newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new", Short: "Write the beginning of something",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newConnectorCommand())
	return cmd
}

func (c *command) newConnectorCommand() *cobra.Command {
	var wanted scaffold.Connector
	cmd := &cobra.Command{
		Use: "connector NAME", Short: "Write the beginning of a connector, with tests that pass",
		Long: `Connector writes a module with a source that compiles and passes the conformance suite: in a new folder NAME, or in
that of --dir. What is special about your system stands in one file of it; its README says where to go on.

Where that folder is inside a checkout of Penstock, the module uses the checkout as it is.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted.Name = args[0]
			wanted.Version = scaffold.Released(mainVersion())
			return c.newConnector(cmd.Context(), wanted)
		},
	}
	cmd.Flags().StringVar(&wanted.Module, "module", "", "module path, for example github.com/you/penstock-NAME (default example.com/penstock-NAME)")
	cmd.Flags().StringVar(&wanted.Dir, "dir", "", "folder to write to; it must not exist, or be empty (default NAME)")
	return cmd
}

func (c *command) newConnector(ctx context.Context, wanted scaffold.Connector) error {
	w, err := scaffold.Write(wanted)
	if err != nil {
		return &exitError{exitBadInput, err}
	}
	say := func(format string, args ...any) { fmt.Fprintf(c.Stdout, format+"\n", args...) }
	say("Connector %s is in %s: %s.", wanted.Name, w.Dir, human.Plural(len(w.Files), "file"))
	steps := []string{"cd " + w.Dir}
	switch {
	case w.Checkout != "":
		say("It uses the checkout of Penstock in %s: see replace in its go.mod.", w.Checkout)
	case wanted.Version == "":
		say("This build of penstock is no release, so the connector's go.mod does not say which version it needs. Unless there is a")
		path, what := scaffold.Here(), "the one here"
		if path == "" {
			path, what = "PATH", "PATH is its folder"
		}
		say("release that it can use, it needs a checkout (%s).", what)
		steps = append(steps, "go mod edit -replace=github.com/penstock-dev/penstock="+path)
	}
	if w.Checkout == "" || !c.tidied(ctx, w.Dir) {
		steps = append(steps, "go mod tidy")
	}
	say("Go on with:")
	for _, step := range append(steps, "go test -race ./...") {
		say("  %s", step)
	}
	return nil
}

// tidied completes the connector's go.mod, as far as that is possible here.
func (c *command) tidied(ctx context.Context, dir string) bool {
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = dir
	out, err := tidy.CombinedOutput()
	if err != nil {
		fmt.Fprintf(c.Stderr, "go mod tidy: %v\n%s\n", err, strings.TrimSpace(string(out)))
	}
	return err == nil
}

// mainVersion is the version of this program, as the Go tool recorded it.
func mainVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}
