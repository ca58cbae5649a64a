package option

import (
	"cmp"
	"fmt"
	"slices"
)

// Position is a place in a job file, or an override on the command line, whose value is not part of it: it may be a secret.
type Position struct {
	File         string
	Line, Column int    // from 1
	Override     string // the key of it, or an argument that has none; then there is no line
}

func (p Position) String() string {
	if p.Override != "" {
		return "--set " + p.Override
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a job file.
type Problem struct {
	Position Position
	Field    string // path of names, for example source.kafka.start; empty for the document itself
	Text     string
}

func (p Problem) String() string {
	if p.Field == "" || p.Field == p.Position.Override {
		return fmt.Sprintf("%s: %s", p.Position, p.Text)
	}
	return fmt.Sprintf("%s: %s: %s", p.Position, p.Field, p.Text)
}

// Problems is the error of a job file that cannot be used: all that is wrong, in the order of the file.
type Problems []Problem

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	return fmt.Sprintf("%s (and %d more problems)", p[0], len(p)-1)
}

// sort brings problems into the order of the file, overrides last.
func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		x, y := a.Position, b.Position
		return cmp.Or(cmp.Compare(x.Override, y.Override), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
}
