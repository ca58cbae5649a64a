package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/conformance/simulation"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/seam"
)

// Victim is who dies.
type Victim uint8

// Victims.
const (
	Reader Victim = iota
	Coordinator
	Both
)

func (v Victim) String() string { return [...]string{"reader", "coordinator", "both"}[v] }

// Cell is one combination.
type Cell struct {
	Point       seam.Point
	Victim      Victim
	Checkpoint  simulation.Then
	Parallelism int // with which the job goes on; before, it is [Before]
}

// Before is the parallelism before the strike.
const Before = 2

// Cells lists all combinations, with the same parallelism, a larger and a smaller one.
func Cells() (all []Cell) {
	for _, point := range seam.Points {
		for _, victim := range []Victim{Reader, Coordinator, Both} {
			for _, then := range []simulation.Then{simulation.Completes, simulation.Aborts, simulation.Hangs} {
				for _, parallelism := range []int{Before, Before + 1, Before - 1} {
					all = append(all, Cell{point, victim, then, parallelism})
				}
			}
		}
	}
	return all
}

// String is the cell's name in tests.
func (c Cell) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%s/%s dies/checkpoint %s/%d to %d", c.Point, c.Victim, c.Checkpoint, Before, c.Parallelism), " ", "_")
}

// The strike comes when checkpoints stand: with the first assignment after the initial ones, or with the third checkpoint.
const (
	assignment    = Before + 1
	readersPart   = 2*Before + 1
	ofCheckpoints = 3
)

func (c Cell) nth() int {
	switch {
	case c.Point < seam.Snapshotted:
		return assignment
	case c.Point < seam.CheckpointCompleted:
		return readersPart
	default:
		return ofCheckpoints
	}
}

// Plan is what package simulation runs for the cell.
func (c Cell) Plan(kind exchange.Kind) *simulation.Plan {
	source := fake.Config{
		Seed: uint64(c.Point), Splits: 6, LaterSplits: []int{2, 2}, Interval: 20 * time.Millisecond, RecordsPerSplit: 60, RecordSize: 16,
		KeyCount: 3, ChunkSize: 5, Faults: fake.Faults{FetchLatency: time.Millisecond},
	}
	options := engine.DefaultOptions()
	options.RetryInitial, options.RetryMax = time.Millisecond, 2*time.Millisecond
	options.RestartInitial, options.RestartMax, options.RestartLimit = time.Millisecond, time.Millisecond, 1000
	options.CheckpointTimeout = 10 * time.Millisecond
	life := simulation.LifePlan{
		Parallelism: Before, Exchange: kind, Interval: 5 * time.Millisecond, Keep: 1, Options: options, Source: source, Room: -1, Calm: time.Minute,
	}
	next := life
	next.Number, next.Parallelism = 1, c.Parallelism
	life.Strike = &simulation.Strike{
		Point: c.Point, N: c.nth(), Reader: c.Victim != Coordinator, Coordinator: c.Victim != Reader, Then: c.Checkpoint, Grace: 50 * time.Millisecond,
	}
	return &simulation.Plan{
		Seed: 1, Splits: source.Splits, Later: source.LaterSplits, Records: source.RecordsPerSplit, Keys: source.KeyCount,
		Lives: []simulation.LifePlan{life, next},
	}
}

// Check lists what is wrong with the report of the cell's plan: what the simulation found, and what did not happen that was to.
func (c Cell) Check(r simulation.Report) (problems []string) {
	problems = append(problems, r.Violations...)
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if want := r.Plan.Digest(); r.Digest != want {
		bad("the output's digest is %x, want %x", r.Digest, want)
	}
	if r.Reached[c.Point] < c.nth() || len(r.Strikes) != 1 {
		bad("%q was reached %d times, and there were %d strikes", c.Point, r.Reached[c.Point], len(r.Strikes))
		return problems
	}
	s := r.Strikes[0]
	if s.Reader != (c.Victim != Coordinator) || s.Coordinator != (c.Victim != Reader) {
		bad("the %s was to die; the reader did: %t, the coordinator: %t", c.Victim, s.Reader, s.Coordinator)
	}
	if held := c.Checkpoint != simulation.Completes; held != (s.Held > 0) {
		bad("the checkpoint was to be one that %s, and %d tasks held one back", c.Checkpoint, s.Held)
	}
	if ends := c.Checkpoint != simulation.Hangs; ends != (s.Completed > 0) {
		bad("the checkpoint was to be one that %s, and %d completed afterwards", c.Checkpoint, s.Completed)
	}
	return problems
}
