package simulation_test

import (
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/conformance/simulation"
)

// Seeds that failed once, by what was wrong. `go test` runs them with an order of goroutines left to chance; to see what they
// did at the time, run them with package sim.
func TestSeedsThatFailedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seed    uint64
		without string
	}{
		"a clock that jumps gives up every running call": {seed: 80},
		"a dead reader that is parked is noticed":        {seed: 285},
		"barriers that get lost leave gaps for ever":     {seed: 1066},
		"a clock that jumps back ends no time-out":       {seed: 102867},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := simulation.NewPlan(c.seed)
			if c.without != "" {
				var err error
				if plan, err = plan.Without(strings.Split(c.without, "; ")...); err != nil {
					t.Fatal(err)
				}
			}
			if r, failed := fails(t, plan); failed {
				tell(t, r)
			}
		})
	}
}
