package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Descent is a split with its parents.
type Descent struct {
	Split   string   `json:"split"`
	Parents []string `json:"parents"`
	State   string   `json:"state"`
	Notes   []string `json:"notes"`
}

// AddLineage explains the state of an enumerator whose splits descend from each other. What cannot be read is a problem of that
// part alone.
func (v *View) AddLineage(m *protocol.Manifest, explain func(sdk.VersionedBytes, []sdk.SplitID) ([]Descent, error)) {
	var finished []sdk.SplitID
	for _, r := range m.Readers {
		for _, s := range r.Finished {
			finished = append(finished, s.ID)
		}
	}
	rows, err := explain(m.Coordinator.Enumerator, finished)
	if err != nil {
		v.Problem = err.Error()
		return
	}
	v.Lineage = rows
}

// maxTree bounds the lines of a printed tree; JSON has all of it.
const maxTree = 200

// writeLineage prints the tree: a split stands under its first parent, and names another one.
func (v View) writeLineage(out io.Writer) error {
	if v.Problem != "" {
		_, err := fmt.Fprintf(out, "lineage: %s\n", v.Problem)
		return err
	}
	if len(v.Lineage) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(out, "LINEAGE"); err != nil {
		return err
	}
	t := tree{out: out, rows: make(map[string]Descent, len(v.Lineage)), children: make(map[string][]string), done: make(map[string]bool)}
	var roots []string
	for _, d := range v.Lineage {
		t.rows[d.Split] = d
	}
	for _, d := range v.Lineage {
		if parent := t.parent(d); parent != "" {
			t.children[parent] = append(t.children[parent], d.Split)
		} else {
			roots = append(roots, d.Split)
		}
	}
	for _, id := range roots {
		t.write(id, "", "")
	}
	if more := len(v.Lineage) - t.lines; more > 0 && t.err == nil {
		_, t.err = fmt.Fprintf(out, "and %s more (--json lists all)\n", human.Count(more))
	}
	return t.err
}

type tree struct {
	out      io.Writer
	rows     map[string]Descent
	children map[string][]string
	done     map[string]bool
	lines    int
	err      error
}

// parent is the one under which a split stands: the first that is known.
func (t *tree) parent(d Descent) string {
	for _, p := range d.Parents {
		if _, ok := t.rows[p]; ok {
			return p
		}
	}
	return ""
}

// write prints a split and what descends from it. head is what stands before it, indent before its descendants.
func (t *tree) write(id, head, indent string) {
	if t.err != nil || t.done[id] || t.lines == maxTree {
		return
	}
	t.done[id] = true
	t.lines++
	d := t.rows[id]
	text := d.State
	if len(d.Notes) > 0 {
		text += ", " + strings.Join(d.Notes, ", ")
	}
	if len(d.Parents) > 1 {
		text += ", also of " + d.Parents[1]
	}
	if _, t.err = fmt.Fprintf(t.out, "%s%s  %s\n", head, id, text); t.err != nil {
		return
	}
	children := t.children[id]
	for i, c := range children {
		if i == len(children)-1 {
			t.write(c, indent+"└─ ", indent+"   ")
		} else {
			t.write(c, indent+"├─ ", indent+"│  ")
		}
	}
}
