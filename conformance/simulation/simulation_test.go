package simulation_test

import (
	"flag"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/conformance/simulation"
)

var (
	oneSeed = flag.Uint64("seed", 0, "simulate this seed alone, and tell its history")
	first   = flag.Uint64("first", 1, "first seed")
	seeds   = flag.Int("seeds", 0, "how many seeds; 0 means 100, or 20 with -short")
	repeat  = flag.Int("repeat", 1, "how often -seed is simulated")
)

// stuckAfter is how long, by the real clock, a simulation may take: one that spins never lets virtual time pass.
const stuckAfter = 1 * time.Minute

// simulate runs one seed in a bubble of its own.
func simulate(t *testing.T, seed uint64) (report simulation.Report) {
	t.Helper()
	stuck := time.AfterFunc(stuckAfter, func() {
		buf := make([]byte, 4<<20)
		panic("seed " + simulation.Replay(seed) + " spins\n" + string(buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("%s\nreplay: %s", v, simulation.Replay(seed))
			panic(v)
		}
	}()
	synctest.Test(t, func(*testing.T) { report = simulation.Run(simulation.NewPlan(seed)) })
	return report
}

func tell(t *testing.T, r simulation.Report) {
	t.Helper()
	t.Errorf("seed %d:\n%s\n%s\n%s\n%s\nreplay: %s", r.Plan.Seed, strings.Join(r.Violations, "\n"), r.Plan, r.History, r.Stacks, simulation.Replay(r.Plan.Seed))
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		for range *repeat {
			r := simulate(t, *oneSeed)
			if len(r.Violations) > 0 {
				tell(t, r)
				return
			}
			if *repeat == 1 {
				t.Logf("%s\n%s", r.Plan, r.History)
			}
		}
		return
	}
	n := *seeds
	if n == 0 {
		if n = 100; testing.Short() {
			n = 20
		}
	}
	var next, lives, failed atomic.Int64
	began := time.Now()
	t.Run("all", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				for i := next.Add(1); i <= int64(n) && failed.Load() < 5; i = next.Add(1) {
					r := simulate(t, *first+uint64(i)-1)
					lives.Add(int64(r.Lives))
					if len(r.Violations) > 0 {
						failed.Add(1)
						tell(t, r)
					}
				}
			})
		}
	})
	took := time.Since(began)
	t.Logf("%d seeds, %d lives, in %s: %.0f seeds a minute", min(next.Load(), int64(n)), lives.Load(), took.Round(time.Millisecond),
		float64(min(next.Load(), int64(n)))/took.Minutes())
}
