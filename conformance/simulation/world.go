package simulation

import (
	"fmt"
	"sync"

	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// world is what outlives a process: the disk and the system that is written to, and what an observer remembers.
type world struct {
	plan    *Plan
	reached map[seam.Point]int
	strikes []StrikeReport
	history *history
	ledger  *ledger
	disk    *checkpointtest.Disk

	mu       sync.Mutex
	newest   sdk.CheckpointID // that is durable
	kind     protocol.CheckpointKind
	attempts map[protocol.Attempt]attemptOf
}

type attemptOf struct {
	life   int
	reader sdk.ReaderID
}

// durable notes that a checkpoint stands, whatever crashes.
func (w *world) durable(of *life, m *protocol.Manifest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of.isDead() {
		return
	}
	if m.ID < w.newest {
		w.history.violate("checkpoint %d is durable after checkpoint %d", m.ID, w.newest)
	}
	w.newest, w.kind = m.ID, m.Kind
	w.ledger.cover(m)
}

// attempt checks that an attempt number belongs to one reader of one life.
func (w *world) attempt(of *life, n protocol.Attempt, reader sdk.ReaderID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := attemptOf{of.number, reader}
	if was, ok := w.attempts[n]; ok && was != is {
		w.history.violate("attempt %d is reader %d of life %d and was reader %d of life %d", n, reader, of.number, was.reader, was.life)
	}
	w.attempts[n] = is
}

// Report is what a simulation found.
type Report struct {
	Plan       *Plan
	Lives      int
	Violations []string
	Digest     uint64 // of the committed output, whatever its order
	History    string
	Stacks     string // of the goroutines of a simulation that hung
	Reached    map[seam.Point]int
	Strikes    []StrikeReport // of the strikes that were carried out
}

// Run simulates the plan. It must be called inside a bubble of testing/synctest: it lets virtual time pass.
func Run(plan *Plan) Report {
	h := newHistory()
	w := &world{plan: plan, history: h, ledger: newLedger(plan, h), disk: checkpointtest.NewDisk(), attempts: map[protocol.Attempt]attemptOf{}, reached: map[seam.Point]int{}}
	lives := w.live()
	return Report{
		Plan: plan, Lives: lives, Violations: h.violations(), Digest: w.ledger.mu.digest, History: h.String(), Stacks: h.stacks(),
		Reached: w.reached, Strikes: w.strikes,
	}
}

// live goes through the lives of the plan, and through quiet ones after them until the job has ended.
func (w *world) live() int {
	for n := 0; ; n++ {
		quiet := n >= len(w.plan.Lives)
		var plan LifePlan
		if quiet {
			plan = quietLife(w.plan)
			plan.Number = n
		} else {
			plan = w.plan.Lives[n]
		}
		l := newLifeOf(w, n, &plan)
		done := l.run(quiet)
		w.count(l)
		switch {
		case done:
			w.ledger.complete()
			w.again(n + 1)
			return n + 1
		case quiet:
			w.history.violate("life %d had no faults, and the job did not end", n)
			return n + 1
		}
	}
}

// count adds up what a life reached.
func (w *world) count(l *life) {
	reached, report, done := l.striker.counts()
	for p, n := range reached {
		w.reached[p] += n
	}
	if done {
		w.strikes = append(w.strikes, report)
	}
}

// again starts the job once more: when it had finished it says so at once, else it stops again.
func (w *world) again(n int) {
	if len(w.plan.Later) > 0 {
		return
	}
	plan := quietLife(w.plan)
	l := newLifeOf(w, n, &plan)
	l.finished = true
	if !l.run(true) {
		w.history.violate("the finished job ran again")
	}
	w.ledger.complete()
}

// quietLife is one without any faults.
func quietLife(p *Plan) LifePlan {
	l := p.Lives[len(p.Lives)-1]
	l.Rates, l.DiskDelay, l.Room, l.Calm, l.Savepoints, l.End = nil, 0, -1, 0, nil, End{}
	l.Jumps, l.Partitions, l.Duplicates, l.Strike = nil, nil, 0, nil
	l.Source.Faults.Script, l.Source.Faults.DiscoveryFailures = nil, 0
	l.Options.RestartLimit = 0
	return l
}

// Replay is the command that simulates a plan again, exactly.
func Replay(p *Plan) string {
	command := fmt.Sprintf("go run ./conformance/simulation/sim -seed %d", p.Seed)
	if len(p.cut) > 0 {
		command += fmt.Sprintf(" -without %q", p.Cut())
	}
	return command
}
