package simulation_test

import (
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/simulation"
	"github.com/penstock-dev/penstock/runtime/seam"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone; with -v tell its history")
	without = flag.String("without", "", "what to take out of the plan of -seed, separated by semicolons")
	repeat  = flag.Int("repeat", 1, "how often -seed is simulated")
	first   = flag.Uint64("first", 1, "first seed")
	stride  = flag.Uint64("stride", 1, "from one seed to the next")
	seeds   = flag.Int("seeds", 0, "how many seeds; 0 means 100, or 20 with -short")
	twice   = flag.Int("twice", 0, "simulate every so many seeds twice, and compare the histories")
)

const (
	// stuckAfter is how long, by the real clock, a simulation may take: one that spins never lets virtual time pass.
	stuckAfter = 5 * time.Minute
	// shrinkFor is how long, by the real clock, a failing plan is made smaller.
	shrinkFor = time.Minute
	// maxFailures ends a long run: nobody reads more.
	maxFailures = 5
	// again is how often a plan is simulated before it counts as one that does not fail: once where that says all.
	again = 10
	// collectAfter is how many bytes a seeded run makes before it collects garbage, between two simulations.
	collectAfter = 512 << 20
)

// simulate runs a plan in a bubble of its own. A goroutine that is left in it panics there.
func simulate(t *testing.T, plan *simulation.Plan) (report simulation.Report) {
	t.Helper()
	stuck := time.AfterFunc(stuckAfter, func() {
		buf := make([]byte, 4<<20)
		panic("a simulation spins; replay: " + simulation.Replay(plan) + "\n" + string(buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	defer func() {
		if v := recover(); v != nil {
			t.Logf("replay: %s", simulation.Replay(plan))
			panic(v)
		}
	}()
	seedRuntime(plan.Seed)
	synctest.Test(t, func(*testing.T) { report = simulation.Run(plan) })
	return report
}

func tell(t *testing.T, r simulation.Report) {
	t.Helper()
	t.Errorf("seed %d:\n%s\n\n%s\n%s\n%s\nreplay: %s", r.Plan.Seed, strings.Join(r.Violations, "\n"), r.Plan, r.History, r.Stacks,
		simulation.Replay(r.Plan))
}

// fails simulates a plan until it fails, or as often as it takes to believe that it does not.
func fails(t *testing.T, plan *simulation.Plan) (r simulation.Report, failed bool) {
	tries := again
	if seededRuntime {
		tries = 1
	}
	for range tries {
		if r = simulate(t, plan); len(r.Violations) > 0 {
			return r, true
		}
	}
	return r, false
}

// failed tells of a failure, once it is as small as possible.
func failed(t *testing.T, r simulation.Report) {
	t.Helper()
	small := simulation.Shrink(r.Plan, shrinkFor, func(p *simulation.Plan) bool { _, failed := fails(t, p); return failed })
	if shrunk, failed := fails(t, small); failed {
		tell(t, shrunk)
	} else {
		tell(t, r)
	}
	if !seededRuntime {
		t.Log("the order of goroutines was left to chance, so it may take several tries; see go doc ./conformance/simulation/sim")
	}
	t.Logf("with nothing taken out: %s", simulation.Replay(simulation.NewPlan(r.Plan.Seed)))
}

func TestSeeds(t *testing.T) {
	if !seededRuntime {
		t.Parallel()
	}
	if *oneSeed != 0 {
		replay(t)
		return
	}
	run := &run{want: int64(*seeds)}
	if run.want == 0 {
		if run.want = 100; testing.Short() {
			run.want = 20
		}
	}
	began := time.Now()
	if seededRuntime {
		run.seeded(t)
	} else {
		run.parallel(t)
	}
	took, done := time.Since(began), min(run.next.Load(), run.want)
	t.Logf("%d seeds, %d lives, %d strikes, %d twice, in %s: %.0f seeds a minute", done, run.lives.Load(), run.struck.Load(),
		run.twice.Load(), took.Round(time.Millisecond), float64(done)/took.Minutes())
}

// run is many seeds.
type run struct {
	want                               int64
	next, lives, struck, failed, twice atomic.Int64
}

// parallel leaves the order of goroutines to Go, and uses all processors.
func (r *run) parallel(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				r.work(t)
			})
		}
	})
}

// seeded runs one simulation after the other on one processor. The collector of garbage interrupts goroutines, so it runs
// between simulations.
func (r *run) seeded(t *testing.T) {
	if runtime.GOMAXPROCS(0) != 1 {
		t.Fatal("GOMAXPROCS has to be 1: go run ./conformance/simulation/sim")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r.work(t)
}

func (r *run) work(t *testing.T) {
	var m runtime.MemStats
	for i := r.next.Add(1); i <= r.want && r.failed.Load() < maxFailures; i = r.next.Add(1) {
		plan := simulation.NewPlan(*first + (uint64(i)-1)**stride)
		report := simulate(t, plan)
		r.lives.Add(int64(report.Lives))
		r.struck.Add(int64(len(report.Strikes)))
		if len(report.Violations) > 0 {
			r.failed.Add(1)
			failed(t, report)
		}
		if *twice > 0 && i%int64(*twice) == 0 {
			r.twice.Add(1)
			if second := simulate(t, plan); second.History != report.History {
				t.Errorf("seed %d is not the same the second time:\n%s", plan.Seed, difference(report.History, second.History))
			}
		}
		if i%8 != 0 || !seededRuntime {
			continue
		}
		if runtime.ReadMemStats(&m); m.HeapAlloc > collectAfter {
			runtime.GC()
		}
	}
}

// difference is where two histories part.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("event %d\n%s\n%s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("one has %d events, the other %d", len(x), len(y))
}

// replay simulates one seed until it fails.
func replay(t *testing.T) {
	plan := simulation.NewPlan(*oneSeed)
	if *without != "" {
		var err error
		if plan, err = plan.Without(strings.Split(*without, "; ")...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range *repeat {
		r := simulate(t, plan)
		if len(r.Violations) > 0 {
			t.Logf("it failed at the %d. of %d times", i+1, *repeat)
			if *without == "" {
				failed(t, r)
			} else {
				tell(t, r)
			}
			return
		}
		if *repeat == 1 {
			t.Logf("%s\n%s", r.Plan, r.History)
		}
	}
}

// With the seeded runtime a seed is the same program every time.
func TestASeedIsTheSameEveryTime(t *testing.T) {
	if !seededRuntime {
		t.Skip("the order of goroutines is left to chance; make sim runs this test with a runtime that leaves nothing to chance")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for seed := uint64(1); seed <= 200; seed++ {
		one, two := simulate(t, simulation.NewPlan(seed)), simulate(t, simulation.NewPlan(seed))
		if one.History != two.History {
			t.Errorf("seed %d: %s", seed, difference(one.History, two.History))
		}
		if seed%10 == 0 {
			runtime.GC()
		}
	}
}

// What no seed reaches proves nothing.
func TestSeedsReachEveryPoint(t *testing.T) {
	t.Parallel()
	reached, struck := map[seam.Point]int{}, 0
	for seed := range uint64(40) {
		r := simulate(t, simulation.NewPlan(2_000_000+seed))
		for p, n := range r.Reached {
			reached[p] += n
		}
		struck += len(r.Strikes)
	}
	for _, p := range seam.Points {
		if reached[p] == 0 {
			t.Errorf("no seed reaches %q", p)
		}
	}
	if struck == 0 { // eight or so, most of the time: which goroutine comes first is not in the seed here
		t.Error("no strike in 40 seeds")
	}
	t.Logf("%d strikes; %v", struck, slices.Sorted(maps.Keys(reached)))
}
