package simulation_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/simulation"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone; with -v tell its history")
	repeat  = flag.Int("repeat", 1, "how often -seed is simulated")
	first   = flag.Uint64("first", 1, "first seed")
	seeds   = flag.Int("seeds", 0, "how many seeds; 0 means 100, or 20 with -short")
)

const (
	// stuckAfter is how long, by the real clock, a simulation may take: one that spins never lets virtual time pass.
	stuckAfter = 5 * time.Minute
	// maxFailures ends a long run: nobody reads more.
	maxFailures = 5
	// again is how often a failing seed is simulated once more, to say how reliably it fails.
	again = 10
)

// simulate runs a plan in a bubble of its own. A goroutine that is left in it panics there.
func simulate(t *testing.T, plan *simulation.Plan) (report simulation.Report) {
	t.Helper()
	stuck := time.AfterFunc(stuckAfter, func() {
		buf := make([]byte, 4<<20)
		panic("a simulation spins; replay: " + simulation.Replay(plan.Seed) + "\n" + string(buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	defer func() {
		if v := recover(); v != nil {
			t.Logf("replay: %s", simulation.Replay(plan.Seed))
			panic(v)
		}
	}()
	synctest.Test(t, func(*testing.T) { report = simulation.Run(plan) })
	return report
}

func tell(t *testing.T, r simulation.Report) {
	t.Helper()
	t.Errorf("seed %d:\n%s\n\n%s\n%s\n%s\nreplay: %s", r.Plan.Seed, strings.Join(r.Violations, "\n"), r.Plan, r.History, r.Stacks,
		simulation.Replay(r.Plan.Seed))
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		replay(t, *oneSeed, *repeat)
		return
	}
	n := int64(*seeds)
	if n == 0 {
		if n = 100; testing.Short() {
			n = 20
		}
	}
	var next, lives, failed atomic.Int64
	began := time.Now()
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1); i <= n && failed.Load() < maxFailures; i = next.Add(1) {
					r := simulate(t, simulation.NewPlan(*first+uint64(i)-1))
					lives.Add(int64(r.Lives))
					if len(r.Violations) > 0 {
						failed.Add(1)
						tell(t, r)
						howOften(t, r.Plan)
					}
				}
			})
		}
	})
	took := time.Since(began)
	t.Logf("%d seeds, %d lives, in %s: %.0f seeds a minute", min(next.Load(), n), lives.Load(), took.Round(time.Millisecond),
		float64(min(next.Load(), n))/took.Minutes())
}

// replay simulates one seed until it fails.
func replay(t *testing.T, seed uint64, times int) {
	for i := range times {
		r := simulate(t, simulation.NewPlan(seed))
		if len(r.Violations) > 0 {
			tell(t, r)
			t.Logf("it failed at the %d. of %d times", i+1, times)
			return
		}
		if times == 1 {
			t.Logf("%s\n%s", r.Plan, r.History)
		}
	}
}

// howOften says how reliably a seed fails: what the seed does not decide is the order of goroutines.
func howOften(t *testing.T, plan *simulation.Plan) {
	failed := 0
	for range again {
		if len(simulate(t, plan).Violations) > 0 {
			failed++
		}
	}
	t.Logf("seed %d fails again in %d of %d times", plan.Seed, failed, again)
}

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
