package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/jobfile"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
)

func (c *command) connectorsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "connectors [NAME]", Short: "List connectors, or the options of one",
		Long: "Connectors lists sources and sinks. With a name it lists every option: type, default and meaning. The name \"job\" lists what a\njob file holds besides, \"runtime\" the engine's options.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.listConnectors()
			}
			return c.describeConnector(args[0])
		},
	}
}

func (c *command) listConnectors() error {
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tNAME\tDELIVERY\tMEANING")
	for _, s := range c.catalog.Sources {
		fmt.Fprintf(w, "source\t%s\t%s\t%s\n", s.Name, s.Guarantee, s.Summary)
	}
	for _, s := range c.catalog.Sinks {
		fmt.Fprintf(w, "sink\t%s\t%s\t%s\n", s.Name, s.Guarantee, s.Summary)
	}
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	_, err := fmt.Fprintln(c.Stdout, "\nOptions of one: penstock connectors NAME. Also: penstock connectors job, penstock connectors runtime.")
	return err
}

func (c *command) describeConnector(name string) error {
	found := false
	var names []string
	show := func(kind, this, summary, guarantee string, group option.Group) {
		names = append(names, this)
		if this != name {
			return
		}
		found = true
		fmt.Fprintf(c.Stdout, "%s %s: %s\nDelivery: %s.\n\n", kind, this, summary, guarantee)
		writeOptions(c.Stdout, group.Options)
	}
	for _, s := range c.catalog.Sources {
		group, _ := s.New()
		show("source", s.Name, s.Summary, s.Guarantee, group)
	}
	for _, s := range c.catalog.Sinks {
		group, _ := s.New()
		show("sink", s.Name, s.Summary, s.Guarantee, group)
	}
	sections := jobfile.Sections(c.catalog)
	names = append(names, "job", "runtime")
	for _, o := range sections.Options {
		if o.Name == name && o.Name == "runtime" && o.Group != nil {
			found = true
			fmt.Fprintf(c.Stdout, "section runtime: %s\n\n", o.Meaning)
			writeOptions(c.Stdout, o.Group.Options)
		}
	}
	if name == "job" {
		found = true
		fmt.Fprint(c.Stdout, "A job file is a YAML mapping of:\n\n")
		writeOptions(c.Stdout, jobOptions(sections))
	}
	if found {
		return nil
	}
	text := fmt.Sprintf("penstock: no connector %q (%s", name, strings.Join(names, ", "))
	if s := option.Suggest(name, names); s != "" {
		text += fmt.Sprintf("; did you mean %q?", s)
	}
	return &exitError{exitBadInput, fmt.Errorf("%s)", text)}
}

// jobOptions flattens the small sections.
func jobOptions(sections option.Group) []*option.Option {
	var list []*option.Option
	for _, o := range sections.Options {
		list = append(list, o)
		if o.Group == nil || o.Name == "runtime" {
			continue
		}
		for _, inner := range o.Group.Options {
			nested := *inner
			nested.Name = o.Name + "." + inner.Name
			list = append(list, &nested)
		}
	}
	return list
}

// writeOptions prints a table whose last column wraps.
func writeOptions(out io.Writer, options []*option.Option) {
	if len(options) == 0 {
		fmt.Fprintln(out, "It has no options.")
		return
	}
	for i, o := range options {
		if i > 0 {
			fmt.Fprintln(out)
		}
		facts := o.Type
		switch {
		case o.Required:
			facts += ", required"
		case o.Default != "":
			facts += ", default " + o.Default
		}
		fmt.Fprintf(out, "%s  (%s)\n", o.Name, facts)
		for _, line := range wrap(o.Meaning, 96) {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
}

func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
