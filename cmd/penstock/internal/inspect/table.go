package inspect

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

// WriteTable prints the checkpoint. Attributes that repeat the split's name, or are long and rarely of interest, are left to
// JSON.
func (v View) WriteTable(out io.Writer) error {
	fmt.Fprintf(out, "checkpoint %d (%s)  %s  complete  %s  %s\n", v.Checkpoint, kind(v.Kind), v.Completed.UTC().Format(time.RFC3339), human.Span(v.Completed.Sub(v.Triggered)), human.Bytes(v.Bytes))
	fmt.Fprintf(out, "job %s  %s committed to sink %s\n", v.Job, human.Plural(v.Records, "record"), v.Sink)
	fmt.Fprintf(out, "lane %s  capability %s %s (digest %s...)  parallelism %d\n", v.Lane, v.Connector, v.Version, v.Digest[:min(4, len(v.Digest))], v.Parallelism)
	if err := v.writeSplits(out); err != nil {
		return err
	}
	if err := v.writeAssignments(out); err != nil {
		return err
	}
	return v.writeLineage(out)
}

// kind is what a person calls it: a job stops with a savepoint.
func kind(k string) string {
	if k == protocol.Stop.String() {
		return "savepoint, at a stop"
	}
	return k
}

// hidden attributes: in the split's name already, or for machines.
var hidden = []string{"topic", "partition", "start", "topic id", "sequence", "part", "children"}

func (v View) writeSplits(out io.Writer) error {
	if len(v.Splits) == 0 {
		_, err := fmt.Fprintln(out, "no splits")
		return err
	}
	columns := v.columns()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := []string{"SPLIT", "READER", "POSITION"}
	for _, c := range columns[min(1, len(columns)):] {
		head = append(head, strings.ToUpper(c))
	}
	fmt.Fprintln(w, strings.Join(append(head, "STATE"), "\t"))
	problems := []string{}
	for _, s := range v.Splits {
		row := []string{s.Split, strconv.Itoa(s.Reader)}
		for i, c := range columns {
			value := number(s.attribute(c))
			if i == 0 {
				value = c + " " + value
			}
			row = append(row, value)
		}
		if len(columns) == 0 {
			row = append(row, "-")
		}
		state := s.State
		if s.Problem != "" {
			state += " (position unknown)"
			problems = append(problems, s.Split+": "+s.Problem)
		}
		fmt.Fprintln(w, strings.Join(append(row, state), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range problems {
		if _, err := fmt.Fprintln(out, p); err != nil {
			return err
		}
	}
	return nil
}

// columns are the attributes worth showing, in the order of the connector: those that at least one split has a value for.
func (v View) columns() []string {
	var list []string
	for _, s := range v.Splits {
		for _, a := range s.Attributes {
			if a.Value != "-" && !slices.Contains(hidden, a.Name) && !slices.Contains(list, a.Name) {
				list = append(list, a.Name)
			}
		}
	}
	return list
}

func (s Split) attribute(name string) string {
	for _, a := range s.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	return "-"
}

// number puts separators into what is a plain number.
func number(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return text
	}
	return human.Count(n)
}

// maxShown assignments are listed; the rest is counted.
const maxShown = 10

func (v View) writeAssignments(out io.Writer) error {
	n := len(v.Assignments)
	if n == 0 {
		return nil
	}
	var parts []string
	for _, a := range v.Assignments[:min(n, maxShown)] {
		parts = append(parts, fmt.Sprintf("%s -> reader %d", a.Split, a.Reader))
	}
	if n > maxShown {
		parts = append(parts, fmt.Sprintf("and %s more", human.Count(n-maxShown)))
	}
	_, err := fmt.Fprintf(out, "%s not yet included: %s\n", human.Plural(n, "assignment"), strings.Join(parts, ", "))
	return err
}
