package simulation

import (
	"strings"
	"testing"
	"time"
)

// A plan that fails because of three things is shrunken to these three, and its name leads to it again.
func TestShrinkLeavesWhatMatters(t *testing.T) {
	t.Parallel()
	plan, life := planWith(t, func(l *LifePlan) bool { return l.Rates[SinkCommit] > 0 && l.Strike != nil && l.Parallelism > 1 })
	fails := func(p *Plan) bool {
		for _, l := range p.Lives {
			if l.Number == life && l.Rates[SinkCommit] > 0 && l.Strike != nil && p.Records >= 7 {
				return true
			}
		}
		return false
	}
	small := Shrink(plan, time.Minute, fails)
	if len(small.Lives) != 1 || small.Splits != 1 || small.Records >= 14 || len(small.Lives[0].Rates) != 1 || small.Lives[0].Parallelism != 1 {
		t.Errorf("not as small as it could be:\n%s", small)
	}
	if !fails(small) || !fails(plan) {
		t.Error("what matters was taken out, or the plan was changed")
	}
	again, err := NewPlan(plan.Seed).Without(strings.Split(small.Cut(), "; ")...)
	if err != nil || again.String() != small.String() {
		t.Errorf("%v\nthe name of the plan\n%s\nleads to\n%s", err, small, again)
	}
	if _, err := plan.Without("what is not there"); err == nil {
		t.Error("something unknown was taken out")
	}
}

// planWith is the first plan with a life of that kind.
func planWith(t *testing.T, want func(*LifePlan) bool) (p *Plan, life int) {
	t.Helper()
	for seed := uint64(1); seed < 100_000; seed++ {
		p := NewPlan(seed)
		for i := range p.Lives {
			if len(p.Lives) > 2 && p.Records > 20 && want(&p.Lives[i]) {
				return p, p.Lives[i].Number
			}
		}
	}
	t.Fatal("no such plan")
	return nil, 0
}
