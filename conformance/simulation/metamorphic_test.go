package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance/simulation"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
)

// The same input under other parallelisms, exchanges, batch sizes, budgets, intervals, faults and crashes gives the same output.
func TestOptionsFaultsAndCrashesChangeNoOutput(t *testing.T) {
	t.Parallel()
	inputs, variants := uint64(8), uint64(6)
	if testing.Short() {
		inputs = 2
	}
	for seed := range inputs {
		plan := simulation.NewPlan(1_000_000 + seed)
		want := plan.Digest()
		for by := range variants {
			r := simulate(t, plan.Vary(by))
			if len(r.Violations) > 0 {
				t.Errorf("variant %d\n%s\n%s\n%s", by, strings.Join(r.Violations, "\n"), r.Plan, r.History)
			}
			if r.Digest != want {
				t.Errorf("seed %d, variant %d: the output's digest is %x, want %x\n%s", plan.Seed, by, r.Digest, want, r.Plan)
			}
		}
	}
}

// One thing at a time: what nobody may notice in the output.
func TestNoSingleChangeChangesTheOutput(t *testing.T) {
	t.Parallel()
	type change struct {
		name  string
		apply func(l *simulation.LifePlan)
	}
	var changes []change
	add := func(name string, apply func(*simulation.LifePlan)) { changes = append(changes, change{name, apply}) }
	for _, n := range []int{1, 2, 3, 7} {
		add(fmt.Sprint("parallelism ", n), func(l *simulation.LifePlan) { l.Parallelism = n })
		add(fmt.Sprint("records of a turn ", n), func(l *simulation.LifePlan) { l.Options.PollRecords = n })
		add(fmt.Sprint("records of a fetch ", n), func(l *simulation.LifePlan) { l.Source.ChunkSize = n })
		add(fmt.Sprint("fetchers ", n), func(l *simulation.LifePlan) { l.Source.Fetchers = n })
		add(fmt.Sprint("mailbox ", n), func(l *simulation.LifePlan) { l.Options.MailboxCommands = n })
		add(fmt.Sprint("tracker ", n), func(l *simulation.LifePlan) { l.Options.TrackerEntries = n })
		add(fmt.Sprint("credit ", n), func(l *simulation.LifePlan) { l.Options.ExchangeCredit = n })
	}
	for _, n := range []int64{1, 100, 1 << 20} {
		add(fmt.Sprint("bytes of a turn ", n), func(l *simulation.LifePlan) { l.Options.PollBytes = n })
	}
	add("small commands", func(l *simulation.LifePlan) {
		l.Options.CommandPayloadBytes, l.Options.MailboxBytes, l.Options.ProcessMailboxBytes = 1100, 1100, 1100
	})
	for _, d := range []time.Duration{engine.Never, time.Millisecond, 10 * time.Millisecond, time.Hour} {
		add(fmt.Sprint("interval ", d), func(l *simulation.LifePlan) { l.Interval = d })
	}
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Rebalance, exchange.Keyed} {
		add(fmt.Sprint("exchange ", kind), func(l *simulation.LifePlan) { l.Exchange = kind })
	}
	for _, place := range simulation.Places {
		for n := range 4 {
			end := simulation.End{Kind: simulation.CrashAt, Place: place, N: 1 + 2*(n/2), Late: n%2 == 0, Fate: simulation.FateLose}
			add(end.String(), func(l *simulation.LifePlan) { l.End = end })
		}
	}
	for _, kind := range []simulation.EndKind{simulation.Crash, simulation.Stop, simulation.Cancel} {
		for _, at := range []time.Duration{0, time.Millisecond, 9 * time.Millisecond} {
			end := simulation.End{Kind: kind, After: at}
			add(end.String(), func(l *simulation.LifePlan) { l.End = end })
		}
	}
	want := plainPlan().Digest()
	for _, c := range changes {
		plan := plainPlan()
		c.apply(&plan.Lives[0])
		r := simulate(t, plan)
		if len(r.Violations) > 0 || r.Digest != want {
			t.Errorf("%s: the output's digest is %x, want %x\n%s\n%s\n%s", c.name, r.Digest, want, strings.Join(r.Violations, "\n"), r.Plan, r.History)
		}
	}
}

// plainPlan is one quiet life of five splits.
func plainPlan() *simulation.Plan {
	p := &simulation.Plan{Seed: 7, Splits: 5, Records: 60, Keys: 3}
	l := simulation.LifePlan{Parallelism: 2, Exchange: exchange.Keyed, Interval: 4 * time.Millisecond, Keep: 2, Options: engine.DefaultOptions(), Room: -1}
	l.Source.Seed, l.Source.Splits, l.Source.RecordsPerSplit, l.Source.RecordSize, l.Source.KeyCount = 7, p.Splits, p.Records, 16, p.Keys
	l.Source.ChunkSize, l.Source.Faults.FetchLatency = 10, time.Millisecond
	p.Lives = []simulation.LifePlan{l}
	return p
}
