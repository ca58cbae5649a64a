package base

import (
	"fmt"
	"slices"
	"testing"
)

// graph holds every state that a reader of these tests can come to, and where each act leads from there. Two sequences of
// acts that end in the same state have the same future, so only one of them is gone on with: that is how sequences of any
// length are covered by a bounded number of steps.
//
// A state is the fingerprint of everything that a later step can depend on: what the reader, the fetcher and the split reader
// hold, where the threads are, and what the rules know. Were something missing there, one act would lead from one state to
// two different ones; each step that is taken more than once checks that it does not.
type graph struct {
	ids    map[string]int
	closes map[string]int32 // where Close leads to, by what it can depend on
	nodes  []node
	open   []int // states with acts that were not tried, and some without, in the order of their discovery
	runs   int   // readers made
	steps  int   // acts done
	looks  int32 // searches for something that was not tried

	careful bool // check again where acts lead that were done before, each of them
}

type node struct {
	next    [numActs]int32 // the state after each act, or one of the two below
	toClose string         // what Close can depend on
	from    int32          // a state before this one
	by      act            // and the act between them
	depth   int32
	seen    int32 // by which search
}

const (
	untried    = -1
	impossible = -2
)

func newGraph() *graph { return &graph{ids: make(map[string]int), closes: make(map[string]int32)} }

// explore tries every act in every state that it comes to.
func (g *graph) explore(t *testing.T) {
	t.Helper()
	g.walk(t, nil)
	for len(g.open) > 0 {
		if s := g.open[0]; g.untried(s) == numActs {
			g.open = g.open[1:]
		} else {
			g.walk(t, g.path(s))
		}
	}
}

// walk does the given acts with a new reader, and then whatever was not tried there or near by.
func (g *graph) walk(t *testing.T, acts []act) {
	t.Helper()
	inWorld(t, func(w *world) {
		s := g.arrive(w, -1, numActs)
		for w.broken.rule == "" {
			if len(acts) == 0 {
				if acts = g.nearest(s); acts == nil {
					break
				}
			}
			a := acts[0]
			if acts = acts[1:]; !w.enabled(a) {
				w.violate("%s cannot happen where it could before", a)
				break
			}
			if next := g.nodes[s].next[a]; next >= 0 && len(acts) > 0 && !g.careful { // to be looked at where the known part ends
				w.act(a)
				s = int(next)
				continue
			}
			w.do(a)
			s = g.arrive(w, s, a)
		}
		g.runs++
		g.steps += len(w.acts)
	})
}

// arrive notes that a led from one state to where w is now, and answers that.
func (g *graph) arrive(w *world, from int, a act) int {
	key, toClose := w.fingerprint()
	to, seen := g.ids[key]
	if !seen {
		to = len(g.nodes)
		g.ids[key] = to
		g.open = append(g.open, to)
		n := node{from: int32(from), by: a, toClose: toClose}
		for a := range numActs {
			n.next[a] = impossible
			if w.enabled(a) {
				n.next[a] = untried
			}
		}
		if from >= 0 {
			n.depth = g.nodes[from].depth + 1
		}
		g.nodes = append(g.nodes, n)
	}
	if from < 0 {
		return to
	}
	switch next := &g.nodes[from].next[a]; *next {
	case untried:
		*next = int32(to)
		if a == doClose {
			g.closes[g.nodes[from].toClose] = int32(to)
		}
	case int32(to):
	default:
		w.violate("one act leads from one state to two: the fingerprint does not tell states apart that differ")
	}
	if n := &g.nodes[to]; g.nodes[from].depth+1 < n.depth {
		n.from, n.by, n.depth = int32(from), a, g.nodes[from].depth+1
	}
	return to
}

// untried answers an act that was not tried in a state, numActs when there is none.
func (g *graph) untried(s int) act {
	n := &g.nodes[s]
	if next, ok := g.closes[n.toClose]; ok && n.next[doClose] == untried {
		n.next[doClose] = next // as from another state that makes no difference to Close
	}
	for _, a := range inOrder {
		if n.next[a] == untried {
			return a
		}
	}
	return numActs
}

// inOrder are the acts in the order in which they are tried. First come those that others can follow, of which there are fewer and
// fewer: a walk ends where all were tried.
var inOrder = [numActs]act{
	doNotify, doWakeup, doAvailability, doPoll, doStep, doResume, doObey, doNoMore, doAdd, doPut, doPutFail, doFail, doGiveUp, doClose,
}

// near is how many states a walk looks at for something to go on with.
const near = 100

// nearest answers how to come from s to what was not tried, that act included; nil when it is too far. Close comes last, wherever it
// is: nothing follows it.
func (g *graph) nearest(s int) []act {
	type step struct {
		state, from int
		by          act
	}
	g.looks++
	steps, found := []step{{s, -1, numActs}}, -1
	for i := 0; i < len(steps) && i < near; i++ {
		at := steps[i].state
		if g.nodes[at].seen == g.looks {
			continue
		}
		g.nodes[at].seen = g.looks
		if a := g.untried(at); a != numActs && (a != doClose || found < 0) {
			if found = i; a != doClose {
				break
			}
		}
		for a, next := range g.nodes[at].next {
			if next >= 0 {
				steps = append(steps, step{int(next), i, act(a)})
			}
		}
	}
	if found < 0 {
		return nil
	}
	acts := []act{g.untried(steps[found].state)}
	for i := found; steps[i].from >= 0; i = steps[i].from {
		acts = append(acts, steps[i].by)
	}
	slices.Reverse(acts)
	return acts
}

// path is how a state can be come to.
func (g *graph) path(s int) []act {
	var acts []act
	for ; g.nodes[s].from >= 0; s = int(g.nodes[s].from) {
		acts = append(acts, g.nodes[s].by)
	}
	slices.Reverse(acts)
	return acts
}

// carried is where an operation leads to when it is carried to its end before anything else happens. One that cannot begin
// changes nothing.
func (g *graph) carried(s int, a act) int {
	for ; ; a = g.goesOn(s) {
		if a == numActs || g.nodes[s].next[a] == impossible {
			return s
		}
		s = int(g.nodes[s].next[a])
	}
}

// carriedAll is where operations lead to from the beginning.
func (g *graph) carriedAll(acts []act) (s int) {
	for _, a := range acts {
		s = g.carried(s, a)
	}
	return s
}

func (g *graph) goesOn(s int) act {
	for _, a := range carryOn {
		if g.nodes[s].next[a] != impossible {
			return a
		}
	}
	return numActs
}

// sequences counts the sequences of n operations from s.
func (g *graph) sequences(s, n int) int {
	if n == 0 {
		return 1
	}
	total := 0
	for a := range operations {
		total += g.sequences(g.carried(s, a), n-1)
	}
	return total
}

// paths counts the sequences of n acts from the beginning.
func (g *graph) paths(n int) uint64 {
	now := make([]uint64, len(g.nodes))
	now[0] = 1
	for range n {
		then := make([]uint64, len(g.nodes))
		for s, count := range now {
			for _, next := range g.nodes[s].next {
				if next >= 0 {
					then[next] += count
				}
			}
		}
		now = then
	}
	total := uint64(0)
	for _, count := range now {
		total += count
	}
	return total
}

func (g *graph) String() string {
	edges, depth := 0, int32(0)
	for i := range g.nodes {
		depth = max(depth, g.nodes[i].depth)
		for _, next := range g.nodes[i].next {
			if next >= 0 {
				edges++
			}
		}
	}
	return fmt.Sprintf("%d states, up to %d acts deep, with %d acts between them; %d readers did %d acts", len(g.nodes), depth, edges, g.runs, g.steps)
}

// fingerprint is everything that what follows can depend on, what matters to Close first: from there on every poll is refused, so
// whatever makes somebody poll, and how a poll ends, makes no difference.
func (w *world) fingerprint() (all, toClose string) {
	if w.doing() == numActs && w.known.closed && w.fetcher.at == nowhere {
		return "closed", "closed" // one state for all: what a closed reader still does is tried at the end of each walk
	}
	k := make(key, 0, 256)
	k.add(int(w.fetcher.at), int(w.fetcher.last), int(w.ringsFor), int(w.looper.at), int(w.doing()))
	k.flags(w.known.created, w.known.failing, w.known.closing, w.known.gaveUp, w.fetcher.at == fetching && w.script.ctx.Err() != nil)
	k.add(len(w.known.brought), w.script.closes, len(w.script.assigned))
	for _, b := range w.known.brought {
		k.add(b.split, int(b.to))
	}
	for _, s := range w.script.assigned {
		k.add(indexOf(s.SplitID()), int(s.Next))
	}
	for _, f := range w.r.feeds {
		f.fingerprint(&k)
	}
	if w.doing() == doClose {
		k = append(k, w.before...)
	} else {
		k = w.looped(k)
	}
	n := len(k)
	if !w.known.closing {
		k.flags(w.known.reported, w.known.woken, w.r.woken.Load())
	}
	if !w.known.closing && !w.known.reported { // afterwards nobody need poll, and no poll finds the end
		k.add(len(w.doorbell))
		k.flags(w.known.noMore, w.known.awake, w.known.told, w.r.noMore)
	}
	all = string(k)
	return all, all[:n]
}

// looped adds what only the loop writes. It is not read while Close waits: a time-out that ends the wait is no event that would
// order what Close does then behind this.
func (w *world) looped(k key) key {
	n := &w.known
	if w.doing() == doPoll {
		k.add(w.turn.Records(), w.r.out.emitted, n.turn.emitted, n.turn.waiting, indexOf(w.r.out.split))
		k.flags(n.turn.failed)
	}
	for i := range n.lines {
		k.flags(n.lines[i].added, n.lines[i].ended)
		k.add(int(n.lines[i].emitted))
	}
	for _, b := range n.brought {
		k.add(b.released)
	}
	k.flags(n.closed, w.r.closed)
	k.add(len(w.r.list), w.r.stalled)
	for _, s := range w.r.list {
		k.add(indexOf(s.id), int(s.state.Next), int(s.since), s.done, len(s.pieces))
		k.flags(s.queued, s.paused, s.told, s.finishing, s.gone)
		for _, p := range s.pieces {
			k.add(len(p.elements), p.lease.users)
		}
	}
	for _, f := range w.r.feeds {
		for _, s := range f.turns[f.head:] {
			k.add(indexOf(s.id))
		}
	}
	return k
}

// fingerprint adds what a fetcher holds, and its hand-over.
func (f *fetcher[E, S]) fingerprint(k *key) {
	k.add(int(f.mu.posted), int(f.applied), len(f.mu.pending.order), len(f.roster.paused), f.roster.active, len(f.bell))
	k.flags(f.mu.idle, f.mu.woken, f.mu.stopped, f.failed.Load(), f.empty.pause > 0)
	k.flags(ended(f.released), ended(f.quiet), ended(f.done))
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	k.flags(f.queue.mu.closed)
	k.add(len(f.queue.mu.items), int(f.queue.mu.bytes))
	for _, b := range f.queue.mu.items {
		k.add(int(b.item.applied), len(b.item.Chunks), len(b.item.Finished))
		for _, c := range b.item.Chunks {
			k.add(indexOf(c.Split), len(c.Elements))
		}
	}
	if !f.mu.stopped { // else whoever waits for room is served by stopping as well, in an order that nobody can see
		k.add(len(f.queue.room))
	}
}

// key is a fingerprint in the making.
type key []byte

func (k *key) add(numbers ...int) {
	for _, n := range numbers {
		*k = append(*k, byte(n))
	}
}

func (k *key) flags(set ...bool) {
	bits := byte(1)
	for _, b := range set {
		bits <<= 1
		if b {
			bits |= 1
		}
	}
	*k = append(*k, bits) // at most seven, so that the first one still tells how many
}
