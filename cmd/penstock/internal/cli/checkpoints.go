package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/inspect"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

func (c *command) checkpointsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "checkpoints", Short: "Look into a state directory", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	ls := &cobra.Command{
		Use: "ls DIR", Short: "List the checkpoints of a state directory, oldest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.listCheckpoints(cmd.Context(), args[0], asJSON)
		},
	}
	show := &cobra.Command{
		Use: "show DIR [ID]", Short: "Show what a checkpoint holds: the newest one, or the one of that number",
		Long: "Show prints what a checkpoint holds, with the position of each split. DIR is a state directory, which may be in use, or the path of\na checkpoint file.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) > 1 {
				id = args[1]
			}
			return c.showCheckpoint(cmd.Context(), args[0], id, asJSON)
		},
	}
	for _, sub := range []*cobra.Command{ls, show} {
		sub.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}
	cmd.AddCommand(ls, show)
	return cmd
}

// listed is one line of ls --json.
type listed struct {
	Checkpoint sdk.CheckpointID `json:"checkpoint"`
	Kind       string           `json:"kind"`
	State      string           `json:"state"`
	Job        string           `json:"job,omitempty"`
	Completed  *time.Time       `json:"completed,omitempty"`
	Bytes      int64            `json:"bytes"`
	File       string           `json:"file"`
	Problem    string           `json:"problem,omitempty"`
}

func (c *command) listCheckpoints(ctx context.Context, dir string, asJSON bool) error {
	infos, err := checkpoint.Inspect(ctx, dir)
	if err != nil {
		return failed(fmt.Errorf("penstock: %w", err))
	}
	list := make([]listed, 0, len(infos))
	for _, i := range infos {
		l := listed{Checkpoint: i.ID, Kind: "checkpoint", State: i.State.String(), Job: i.Job, Bytes: i.Size, File: i.Path}
		if i.Savepoint {
			l.Kind = "savepoint"
		}
		if i.State == checkpoint.Usable {
			l.Kind, l.Completed = i.Kind.String(), &i.Completed
		}
		if i.Err != nil {
			l.Problem = i.Err.Error()
		}
		list = append(list, l)
	}
	if asJSON {
		return c.printJSON(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(c.Stdout, "no checkpoints in %s\n", dir)
		return err
	}
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECKPOINT\tKIND\tAGE\tSIZE\tSTATE\tFILE")
	for _, l := range list {
		age := "-"
		if l.Completed != nil {
			age = human.Span(time.Since(*l.Completed))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", l.Checkpoint, l.Kind, age, human.Bytes(l.Bytes), l.State, l.File)
	}
	return w.Flush()
}

func (c *command) showCheckpoint(ctx context.Context, path, id string, asJSON bool) error {
	file, err := chosen(ctx, path, id)
	if err != nil {
		return err
	}
	m, info, err := checkpoint.ReadFile(file)
	if err != nil {
		return failed(fmt.Errorf("penstock: %w", err))
	}
	view := inspect.NewView(m, info.Path, info.Size, c.describe(m.Connector))
	if source, ok := c.catalog.Source(m.Connector); ok && source.Lineage != nil {
		view.AddLineage(m, source.Lineage)
	}
	if asJSON {
		return c.printJSON(view)
	}
	return view.WriteTable(c.Stdout)
}

// chosen is the path of the checkpoint file to show.
func chosen(ctx context.Context, path, id string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", failed(fmt.Errorf("penstock: %w", err))
	}
	if !info.IsDir() {
		return path, nil
	}
	infos, err := checkpoint.Inspect(ctx, path)
	if err != nil {
		return "", failed(fmt.Errorf("penstock: %w", err))
	}
	infos = slices.DeleteFunc(infos, func(i checkpoint.Info) bool { return i.State == checkpoint.Unfinished })
	if len(infos) == 0 {
		return "", failed(fmt.Errorf("penstock: no checkpoints in %s", path))
	}
	if id == "" {
		return infos[len(infos)-1].Path, nil
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return "", &exitError{exitBadInput, fmt.Errorf("penstock: %q is not a checkpoint number", id)}
	}
	for _, i := range infos {
		if i.ID == sdk.CheckpointID(n) {
			return i.Path, nil
		}
	}
	return "", failed(fmt.Errorf("penstock: no checkpoint %d in %s (penstock checkpoints ls %s lists them)", n, path, quote(path)))
}

// describe decodes splits with the connector's codec, which needs no configuration. It is nil for a connector that this
// build does not have.
func (c *command) describe(connector string) inspect.Describe {
	source, ok := c.catalog.Source(connector)
	if !ok {
		return nil
	}
	_, build := source.New()
	built, err := build()
	if err != nil {
		return func(protocol.Split) ([]sdk.Attribute, error) { return nil, err }
	}
	return built.Source.Describe
}

func (c *command) printJSON(v any) error {
	e := json.NewEncoder(c.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
