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
	var markdown bool
	cmd := &cobra.Command{
		Use: "connectors [NAME]", Short: "List connectors, or the options of one",
		Long: "Connectors lists sources and sinks. With a name it lists every option: type, default and meaning. The name \"job\" lists what a\njob file holds besides, \"runtime\" the engine's options.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case markdown && len(args) == 0:
				for _, p := range c.pages() {
					p.writeMarkdown(c.Stdout)
				}
				return nil
			case len(args) == 0:
				return c.listConnectors()
			}
			return c.describePages(args[0], markdown)
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print Markdown, all pages when no name is given")
	return cmd
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

// page is what there is to say about one name.
type page struct {
	name, kind string
	summary    string
	guarantee  string // of a connector
	options    []*option.Option
}

func (c *command) pages() []page {
	sections := jobfile.Sections(c.catalog)
	list := []page{{name: "job", kind: "job file", summary: "A YAML mapping of the following.", options: jobOptions(sections)}}
	for _, o := range sections.Options {
		if o.Name == "runtime" && o.Group != nil {
			list = append(list, page{name: o.Name, kind: "section", summary: o.Meaning, options: o.Group.Options})
		}
	}
	for _, s := range c.catalog.Sources {
		group, _ := s.New()
		list = append(list, page{s.Name, "source", s.Summary, s.Guarantee, flatten(group.Options)})
	}
	for _, s := range c.catalog.Sinks {
		group, _ := s.New()
		list = append(list, page{s.Name, "sink", s.Summary, s.Guarantee, flatten(group.Options)})
	}
	return list
}

// describePages prints every page of a name: a source and a sink may share one.
func (c *command) describePages(name string, markdown bool) error {
	found := false
	var names []string
	for _, p := range c.pages() {
		names = append(names, p.name)
		if p.name != name {
			continue
		}
		found = true
		if markdown {
			p.writeMarkdown(c.Stdout)
		} else {
			p.write(c.Stdout)
		}
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

func (p page) write(out io.Writer) {
	fmt.Fprintf(out, "%s %s: %s\n", p.kind, p.name, p.summary)
	if p.guarantee != "" {
		fmt.Fprintf(out, "Delivery: %s.\n", p.guarantee)
	}
	fmt.Fprintln(out)
	writeOptions(out, p.options)
}

// writeMarkdown prints the page for the documentation.
func (p page) writeMarkdown(out io.Writer) {
	fmt.Fprintf(out, "## %s %s\n\n%s\n", p.kind, p.name, p.summary)
	if p.guarantee != "" {
		fmt.Fprintf(out, "\nDelivery: %s.\n", p.guarantee)
	}
	if len(p.options) == 0 {
		fmt.Fprint(out, "\nIt has no options.\n\n")
		return
	}
	fmt.Fprint(out, "\n| option | type | default | meaning |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", "\\|")
	for _, o := range p.options {
		value := "`" + o.Default + "`"
		switch {
		case o.Required:
			value = "required"
		case o.Default == "":
			value = ""
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", o.Name, cell.Replace(o.Type), cell.Replace(value), cell.Replace(o.Meaning))
	}
	fmt.Fprintln(out)
}

// jobOptions flattens the small sections.
func jobOptions(sections option.Group) []*option.Option {
	var list []*option.Option
	for _, o := range sections.Options {
		if o.Name == "runtime" { // a page of its own
			list = append(list, o)
			continue
		}
		list = append(list, flatten([]*option.Option{o})...)
	}
	return list
}

// flatten puts the options of a section behind it, with its name before theirs.
func flatten(options []*option.Option) []*option.Option {
	var list []*option.Option
	for _, o := range options {
		list = append(list, o)
		if o.Group == nil {
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
