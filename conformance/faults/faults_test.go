package faults_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/conformance/faults"
	"github.com/penstock-dev/penstock/conformance/simulation"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/seam"
)

// Every cell, with an exchange with which a reader restarts alone and one with which all tasks restart.
func TestNoDeathLosesOrRepeatsAnything(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Keyed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, c := range faults.Cells() {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					r := run(t, c.Plan(kind))
					if problems := c.Check(r); len(problems) > 0 {
						t.Errorf("%s\n\n%s\n%s", strings.Join(problems, "\n"), r.Plan, r.History)
					}
				})
			}
		})
	}
}

func run(t *testing.T, p *simulation.Plan) (r simulation.Report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = simulation.Run(p) })
	return r
}

func TestEveryCombinationIsACell(t *testing.T) {
	t.Parallel()
	cells := faults.Cells()
	if want := 11 * 3 * 3 * 3; len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	for i, c := range cells {
		if slices.Contains(cells[:i], c) {
			t.Errorf("%s is there twice", c)
		}
	}
}

// A cell whose strike does not come, hits somebody else, or leaves the checkpoint alone is told.
func TestACellThatDoesNotHappenFails(t *testing.T) {
	t.Parallel()
	c := faults.Cell{Point: seam.Applying, Victim: faults.Both, Checkpoint: simulation.Aborts, Parallelism: 1}
	for what, change := range map[string]func(*simulation.Strike){
		"were 0 strikes":           func(s *simulation.Strike) { s.N = 1000 },
		"the both was to die":      func(s *simulation.Strike) { s.Coordinator = false },
		"0 tasks held":             func(s *simulation.Strike) { s.Then = simulation.Completes },
		"0 completed after":        func(s *simulation.Strike) { s.Then = simulation.Hangs },
		"\"applying\" was reached": func(s *simulation.Strike) { s.N = 1000 },
	} {
		p := c.Plan(exchange.Forward)
		change(p.Lives[0].Strike)
		if problems := strings.Join(c.Check(run(t, p)), "\n"); !strings.Contains(problems, what) {
			t.Errorf("want a problem with %q, got %q", what, problems)
		}
	}
}
