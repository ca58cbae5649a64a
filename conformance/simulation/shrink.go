package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A cut takes one thing out of a plan. Its name says which, and is what [Plan.Without] understands, so that a shrunken plan is
// a seed and a list of names.
type cut struct {
	name  string
	apply func(p *Plan)
}

// cuts lists what can be taken out of p, the biggest first.
func (p *Plan) cuts() (out []cut) {
	add := func(name string, apply func(*Plan)) { out = append(out, cut{name, apply}) }
	if len(p.Lives) > 1 {
		for i := range p.Lives {
			add(fmt.Sprintf("life %d", p.Lives[i].Number), func(p *Plan) { p.Lives = slices.Delete(p.Lives, i, i+1) })
		}
	}
	for i := range p.Lives {
		for _, c := range p.Lives[i].cuts() {
			add(fmt.Sprintf("life %d: %s", p.Lives[i].Number, c.name), func(p *Plan) { c.apply(&p.Lives[i]) })
		}
	}
	if len(p.Later) > 0 {
		add("later splits", func(p *Plan) { p.resize(p.Splits, nil, p.Records) })
	}
	for n := p.Splits / 2; n > 0; n /= 2 {
		add(fmt.Sprintf("splits beyond %d", n), func(p *Plan) { p.resize(n, p.Later, p.Records) })
	}
	for n := p.Records / 2; n > 0; n /= 2 {
		add(fmt.Sprintf("records beyond %d", n), func(p *Plan) { p.resize(p.Splits, p.Later, n) })
	}
	return out
}

// resize changes the input, everywhere.
func (p *Plan) resize(splits int, later []int, records int64) {
	p.Splits, p.Later, p.Records = splits, later, records
	for i := range p.Lives {
		c := &p.Lives[i].Source
		c.Splits, c.LaterSplits, c.RecordsPerSplit = splits, later, records
	}
}

type lifeCut struct {
	name  string
	apply func(l *LifePlan)
}

func (l *LifePlan) cuts() (out []lifeCut) {
	add := func(there bool, name string, apply func(*LifePlan)) {
		if there {
			out = append(out, lifeCut{name, apply})
		}
	}
	for _, place := range Places {
		add(l.Rates[place] > 0, string(place)+" fails", func(l *LifePlan) { delete(l.Rates, place) })
	}
	add(l.Strike != nil, "strike", func(l *LifePlan) { l.Strike = nil })
	add(len(l.Partitions) > 0, "partitions", func(l *LifePlan) { l.Partitions = nil })
	add(l.Duplicates > 0, "duplicates", func(l *LifePlan) { l.Duplicates = 0 })
	add(len(l.Jumps) > 0, "jumps", func(l *LifePlan) { l.Jumps = nil })
	add(l.Skew != 0, "skew", func(l *LifePlan) { l.Skew = 0 })
	add(len(l.Savepoints) > 0, "savepoints", func(l *LifePlan) { l.Savepoints = nil })
	add(l.Room >= 0, "full disk", func(l *LifePlan) { l.Room = -1 })
	add(l.DiskDelay > 0, "slow disk", func(l *LifePlan) { l.DiskDelay = 0 })
	f := &l.Source.Faults
	for i := range f.Script {
		name := fmt.Sprintf("%s at record %d of split %d", f.Script[i].Kind, f.Script[i].Record, f.Script[i].Split)
		add(true, name, func(l *LifePlan) {
			l.Source.Faults.Script = slices.Delete(slices.Clone(l.Source.Faults.Script), i, i+1)
		})
	}
	add(f.DiscoveryFailures > 0, "failing discoveries", func(l *LifePlan) { l.Source.Faults.DiscoveryFailures = 0 })
	add(f.DiscoveryLatency > 0, "slow discoveries", func(l *LifePlan) { l.Source.Faults.DiscoveryLatency = 0 })
	add(f.FalseRings > 0, "false rings", func(l *LifePlan) { l.Source.Faults.FalseRings = 0 })
	add(f.EmptyTurns > 0, "empty turns", func(l *LifePlan) { l.Source.Faults.EmptyTurns = 0 })
	add(f.FetchLatency > 0, "slow fetches", func(l *LifePlan) { l.Source.Faults.FetchLatency = 0 })
	add(l.Source.RecordsPerSecond > 0, "rate limit", func(l *LifePlan) { l.Source.RecordsPerSecond = 0 })
	for n := l.Parallelism / 2; n > 0; n /= 2 {
		add(true, fmt.Sprintf("readers beyond %d", n), func(l *LifePlan) { l.Parallelism = n })
	}
	return out
}

// clone is deep enough for cuts.
func (p *Plan) clone() *Plan {
	q := *p
	q.Lives = slices.Clone(p.Lives)
	for i := range q.Lives {
		rates := map[Place]float64{}
		maps.Copy(rates, q.Lives[i].Rates)
		q.Lives[i].Rates = rates
	}
	q.cut = slices.Clone(p.cut)
	return &q
}

// Without takes things out of a plan by name, one after the other: what [Shrink] took out.
func (p *Plan) Without(names ...string) (*Plan, error) {
	q := p.clone()
	for _, name := range names {
		i := slices.IndexFunc(q.cuts(), func(c cut) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("the plan of seed %d has no %q to take out", p.Seed, name)
		}
		q = q.without(q.cuts()[i])
	}
	return q, nil
}

func (p *Plan) without(c cut) *Plan {
	q := p.clone()
	c.apply(q)
	q.cut = append(q.cut, c.name)
	return q
}

// Cut names what was taken out of the plan.
func (p *Plan) Cut() string { return strings.Join(p.cut, "; ") }

// Shrink takes out of a plan whatever it can while fails says that it still fails, until nothing is left to take out or the
// time is over.
func Shrink(p *Plan, limit time.Duration, fails func(*Plan) bool) *Plan {
	began := time.Now()
	for again := true; again; {
		again = false
		for i := 0; i < len(p.cuts()) && time.Since(began) < limit; {
			if q := p.without(p.cuts()[i]); fails(q) {
				p, again = q, true // what came after it is at its place now
			} else {
				i++
			}
		}
	}
	return p
}
