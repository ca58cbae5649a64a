package base

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

// Every interleaving of {put, poll, availability, notify, add splits, no more splits, error, wakeup, close}, of any length,
// on a reader of two splits and three batches, each thread held in the middle of what it does while others go on. Among
// them are every sequence of six whole operations and every merge of what the threads would do by themselves, which are
// counted. The rules are those of known: no availability is lost, every element that was fetched is emitted once and in
// order or dropped by Close, batches are released once, a wakeup ends a turn and a fetch and nothing else, the input ends
// when everything was emitted and nothing failed, a snapshot is what was emitted, and Close leaves nothing behind.
//
// What is one step here: a thread between two calls of the connector or the engine, or of its metrics. The few instructions
// in which the loop takes from a hand-over while a fetcher offers to it, and then fails, are left to
// TestHandoverNeverLosesAvailability and TestAFailureNeverOvertakesData.
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.explore(t)
	t.Logf("%s; %d sequences of 12 acts", g, g.paths(12))
	everySequence(t, g)
	everyMerge(t, g)
	wander(t, g)
}

// everySequence counts the sequences of six operations, each carried to its end before the next, that the graph has from a
// new reader, one that fetches, one with a batch that nobody has polled for, and one whose last batch is fetched.
func everySequence(t *testing.T, g *graph) {
	t.Helper()
	const length = 6
	begins := [][]act{{}, {doAdd}, {doAdd, doPut}, {doAdd, doNoMore, doPut, doPoll, doPut}}
	got := 0
	for _, acts := range begins {
		got += g.sequences(g.carriedAll(acts), length)
	}
	want := len(begins)
	for range length {
		want *= int(operations)
	}
	if t.Logf("%d sequences of %d operations from %d beginnings", got, length, len(begins)); got != want {
		t.Errorf("%d sequences of %d operations, want %d", got, length, want)
	}
}

// everyMerge finds every merge of what the threads would do by themselves in the graph, and does some of them with nothing left
// out, to see that they lead where the graph says.
func everyMerge(t *testing.T, g *graph) {
	t.Helper()
	const oneIn = 20
	merged := 0
	for _, last := range [...]act{doPut, doFail, doPutFail} {
		threads := [][]act{
			{doPut, doPut, last},
			{doPoll, doAvailability, doAdd, doNoMore, doPoll, doClose}, // a snapshot is taken after each
			{doWakeup, doNotify},
		}
		merge(threads, []act{doAdd}, func(acts []act) {
			if end := g.carriedAll(acts); merged%oneIn == 0 {
				carry(t, g, acts, end)
			}
			merged++
		})
	}
	const want = 3 * 39_916_800 / (6 * 720 * 2) // 11! / (3! 6! 2!) for each
	if t.Logf("%d merges", merged); merged != want {
		t.Errorf("%d merges, want %d", merged, want)
	}
}

// merge calls f with every order of all acts that keeps the order of each thread, behind those that are done.
func merge(threads [][]act, done []act, f func([]act)) {
	ended := true
	for i, rest := range threads {
		if len(rest) == 0 {
			continue
		}
		ended = false
		next := slices.Clone(threads)
		next[i] = rest[1:]
		merge(next, append(slices.Clone(done), rest[0]), f)
	}
	if ended {
		f(done)
	}
}

// carry does operations with a new reader, each carried to its end if it can begin, and compares the state that they lead to.
func carry(t *testing.T, g *graph, acts []act, end int) {
	t.Helper()
	inWorld(t, func(w *world) {
		for _, a := range acts {
			if w.enabled(a) && w.broken.rule == "" {
				w.do(a)
				w.settle()
			}
		}
		key, _ := w.fingerprint()
		if s, ok := g.ids[key]; !ok || s != end {
			w.violate("these acts lead to another state than others that should be the same")
		}
	})
}

// wander does random acts and compares each state with that of the graph, which took other ways to it.
func wander(t *testing.T, g *graph) {
	t.Helper()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %#x", seed)
	states := len(g.nodes)
	g.careful = true
	for range 200 {
		var acts []act
		for s := 0; len(acts) < 60; {
			a := act(rng.IntN(int(numActs)))
			if next := g.nodes[s].next[a]; next >= 0 {
				acts, s = append(acts, a), int(next)
			}
		}
		g.walk(t, acts)
	}
	if len(g.nodes) != states {
		t.Errorf("%d states that were not found before", len(g.nodes)-states)
	}
}

// inWorld calls f with a reader in a bubble of its own, takes both down, and fails the test if a rule was broken.
func inWorld(t *testing.T, f func(*world)) {
	t.Helper()
	if w := try(t, f); w.broken.rule != "" {
		w = shrunk(t, w)
		t.Fatalf("%s\nafter %v", w.broken.rule, w.acts[:w.broken.acts])
	}
}

func try(t *testing.T, f func(*world)) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t)
		f(w)
		w.finish()
	})
	return w
}

// shrunk leaves out acts for as long as a rule is broken without them.
func shrunk(t *testing.T, w *world) *world {
	t.Helper()
	for i := 0; i < w.broken.acts; {
		rest := slices.Delete(slices.Clone(w.acts[:w.broken.acts]), i, i+1)
		if less := try(t, func(w *world) { w.doAll(rest) }); less.broken.rule != "" && less.broken.acts < w.broken.acts {
			w, i = less, 0
		} else {
			i++
		}
	}
	return w
}

// doAll does what can happen of acts, until a rule is broken.
func (w *world) doAll(acts []act) {
	for _, a := range acts {
		if w.enabled(a) && w.broken.rule == "" {
			w.do(a)
		}
	}
}
