package conformance

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/sdk"
)

// Run runs all cases as subtests of t, named group/case. Select some with -run, for example
//
//	go test -race -run 'TestConformance/state'
func Run[S sdk.Split, B Backend](t *testing.T, h Harness[S, B]) {
	t.Helper()
	if err := h.validate(); err != nil {
		t.Fatal(err)
	}
	h = h.withDefaults()
	for _, group := range groups() {
		t.Run(group[0].Group(), func(t *testing.T) {
			for _, c := range group {
				t.Run(path.Base(c.Name), func(t *testing.T) {
					if h.Wall {
						t.Parallel() // they wait more than they work
					}
					switch r := attempt(t, h, c); {
					case r.Skipped != "":
						t.Skip(r.Skipped)
					case r.Failed():
						t.Error("\n" + r.String())
					}
				})
			}
		})
	}
}

// Examine runs the cases whose names begin with one of the prefixes, or all, and answers what came of them without failing t: for tools, and for the
// tests of the suite.
func Examine[S sdk.Split, B Backend](t *testing.T, h Harness[S, B], prefixes ...string) ([]Result, error) {
	t.Helper()
	if err := h.validate(); err != nil {
		return nil, err
	}
	h = h.withDefaults()
	var results []Result
	for _, c := range Cases() {
		selected := len(prefixes) == 0
		for _, prefix := range prefixes {
			selected = selected || strings.HasPrefix(c.Name, prefix)
		}
		if selected {
			results = append(results, attempt(t, h, c))
		}
	}
	return results, nil
}

// groups lists the cases by group.
func groups() (all [][]Case) {
	for _, c := range Cases() {
		if n := len(all); n > 0 && all[n-1][0].Group() == c.Group() {
			all[n-1] = append(all[n-1], c)
			continue
		}
		all = append(all, []Case{c})
	}
	return all
}

// attempt runs one case, in a bubble of its own unless the system cannot be there.
func attempt[S sdk.Split, B Backend](t *testing.T, h Harness[S, B], c Case) Result {
	t.Helper()
	r := Result{Case: c}
	if why, ok := h.Exempt[c.Name]; ok {
		r.Skipped = "exempt: " + why
		return r
	}
	x := &trial[S, B]{h: h}
	switch {
	case !h.Wall:
		x.bubble(t, scenario[S, B](c.Name))
	case c.OnTheWall():
		x.run(scenario[S, B](c.Name))
	default:
		r.Skipped = notOnTheWall
		return r
	}
	x.outcome(&r)
	return r
}

// bubble runs a case in virtual time.
func (x *trial[S, B]) bubble(t *testing.T, scenario func(*trial[S, B])) {
	t.Helper()
	// What a case leaves behind blocks its bubble for ever, which synctest answers with a panic. The cases that look for it have
	// said so already; in all others it is not what is looked for.
	defer func() {
		if v := recover(); v != nil && !isDeadlock(v) {
			x.fail("the case panicked: %v", v)
		}
	}()
	oneProcessor(func() { synctest.Test(t, func(*testing.T) { x.run(scenario) }) })
}

// single is how many bubbles hold the process to one processor, and how many it had before.
var single struct {
	sync.Mutex
	bubbles, before int
}

// oneProcessor runs f while one goroutine of the process runs at a time. Two timers of a bubble may be due at the same moment: the bubble runs the
// one while a goroutine that looks at the other runs that, and the race detector, for which they are one thread, crashes (golang/go#78156).
// It finds races as well without, since it looks at what happens before what, and a case takes the same course more often.
func oneProcessor(f func()) {
	single.Lock()
	if single.bubbles++; single.bubbles == 1 {
		single.before = runtime.GOMAXPROCS(1)
	}
	single.Unlock()
	defer func() {
		single.Lock()
		defer single.Unlock()
		if single.bubbles--; single.bubbles == 0 {
			runtime.GOMAXPROCS(single.before)
		}
	}()
	f()
}

// isDeadlock tells the panic of a bubble whose goroutines are all blocked. It has no type of its own.
func isDeadlock(v any) bool { return strings.HasPrefix(fmt.Sprint(v), "deadlock:") }
