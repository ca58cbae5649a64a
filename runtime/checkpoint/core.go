package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// ErrTimeout is the cause of a checkpoint that took longer than it may.
var ErrTimeout = errors.New("the checkpoint timed out")

// Phase is how far the checkpoint in progress has come.
type Phase uint8

// Phases of a checkpoint.
const (
	Idle       Phase = iota
	Cutting          // waiting for coordinator, readers and sink tasks
	Storing          // the manifest is being written
	Committing       // it is durable; sink tasks commit
)

func (p Phase) String() string { return [...]string{"idle", "cutting", "storing", "committing"}[p] }

// Event is an input of [Core.Step]. The set is closed.
type Event interface{ event() }

// The events.
type (
	// Trigger starts a checkpoint. It is ignored when the time for one has not come; see [Core.Ready].
	Trigger struct {
		ID          sdk.CheckpointID
		Kind        protocol.CheckpointKind
		LastAttempt protocol.Attempt
		Now         time.Time
	}
	// CoordinatorTaken is the coordinator's part.
	CoordinatorTaken struct {
		ID    sdk.CheckpointID
		State protocol.CoordinatorState
		Now   time.Time
	}
	// ReaderTaken is a reader's part.
	ReaderTaken struct {
		ID    sdk.CheckpointID
		State protocol.ReaderState
		Now   time.Time
	}
	// SinkTaken is a sink task's part.
	SinkTaken struct {
		ID    sdk.CheckpointID
		State protocol.SinkState
		Now   time.Time
	}
	// Stored says that the manifest is durable, or why not.
	Stored struct {
		ID   sdk.CheckpointID
		Size int64
		Err  error
		Now  time.Time
	}
	// Committed says that a sink task made its part visible.
	Committed struct {
		ID   sdk.CheckpointID
		Task int
		Now  time.Time
	}
	// Lost gives up the checkpoint in progress, unless it is durable already: a task of the cut is gone, or cannot take
	// part.
	Lost struct {
		Reason telemetry.AbortReason
		Err    error
		Now    time.Time
	}
	// Tick lets time pass.
	Tick struct{ Now time.Time }
)

func (Trigger) event()          {}
func (CoordinatorTaken) event() {}
func (ReaderTaken) event()      {}
func (SinkTaken) event()        {}
func (Stored) event()           {}
func (Committed) event()        {}
func (Lost) event()             {}
func (Tick) event()             {}

// Effect is an instruction to the driver, to be carried out in order.
type Effect interface{ effect() }

// The effects.
type (
	// Cut asks the coordinator for its part and to send the barriers.
	Cut struct {
		ID   sdk.CheckpointID
		Kind protocol.CheckpointKind
	}
	// Store asks to write the manifest durably, and to answer with [Stored].
	Store struct{ Manifest *protocol.Manifest }
	// Complete says that the checkpoint is durable: tell the sink tasks to commit, and readers and coordinator that it completed. Only
	// from here on may anything that it prepared become visible.
	Complete struct{ Manifest *protocol.Manifest }
	// Finished says that everything of it is committed. The next one may start.
	Finished struct {
		Manifest *protocol.Manifest
		Size     int64
		Began    time.Time
		Stages   [5]time.Duration // indexed by telemetry.CheckpointStage
	}
	// Aborted says that it was given up: tell everybody.
	Aborted struct {
		ID     sdk.CheckpointID
		Kind   protocol.CheckpointKind
		Reason telemetry.AbortReason
		Err    error
	}
)

func (Cut) effect()      {}
func (Store) effect()    {}
func (Complete) effect() {}
func (Finished) effect() {}
func (Aborted) effect()  {}

// Limits are how long a checkpoint may take, and how soon the next one follows.
type Limits struct {
	// Timeout bounds the time until the last part of the cut has come.
	Timeout time.Duration
	// RetryInitial is the pause after a checkpoint that was given up. It doubles with each further one, up to RetryMax, and
	// begins anew when one is durable: whoever cannot take part for long is asked less and less often.
	RetryInitial time.Duration
	RetryMax     time.Duration
}

// Core takes one checkpoint after the other. It has no goroutine, clock or I/O: time comes with the events. The job loop
// owns it.
type Core struct {
	template protocol.Manifest // what is the same in all manifests of this run
	sinks    int
	limits   Limits
	stale    uint64

	pause     time.Duration // after the last one that was given up; 0 when one was durable since
	holdUntil time.Time     // no checkpoint starts before

	phase     Phase
	manifest  *protocol.Manifest
	began     time.Time
	phaseFrom time.Time
	cut       bool // the coordinator's part is there
	readers   map[sdk.ReaderID]bool
	tasks     map[int]bool
	committed map[int]bool
	size      int64
	stages    [5]time.Duration
	early     bool // it was to be the final one, and the coordinator still had splits for somebody
}

// NewCore returns an idle core for template.Parallelism readers and the given number of sink tasks.
func NewCore(template protocol.Manifest, sinks int, limits Limits) *Core {
	return &Core{template: template, sinks: sinks, limits: limits}
}

// Phase is how far the checkpoint in progress has come.
func (c *Core) Phase() Phase { return c.phase }

// Ready reports that a checkpoint can be started: none is in progress, and the pause after one that was given up is over.
func (c *Core) Ready(now time.Time) bool { return c.phase == Idle && !now.Before(c.holdUntil) }

// Wake is when time alone makes a difference: a checkpoint that is being cut times out, which takes a [Tick], or a pause ends. ok
// is false when nothing of the kind is ahead.
func (c *Core) Wake(now time.Time) (at time.Time, ok bool) {
	switch c.phase {
	case Cutting:
		return c.began.Add(c.limits.Timeout), true
	case Idle:
		return c.holdUntil, now.Before(c.holdUntil)
	case Storing, Committing:
	}
	return time.Time{}, false
}

// Pending is the checkpoint in progress, 0 when idle.
func (c *Core) Pending() sdk.CheckpointID {
	if c.phase == Idle {
		return 0
	}
	return c.manifest.ID
}

// Stale counts events of checkpoints that were over.
func (c *Core) Stale() uint64 { return c.stale }

// Step applies e and returns what to do.
func (c *Core) Step(e Event) []Effect {
	switch e := e.(type) {
	case Trigger:
		return c.trigger(e)
	case CoordinatorTaken:
		return c.part(e.ID, e.Now, telemetry.CheckpointCut, func() bool { return c.takeCoordinator(e) })
	case ReaderTaken:
		return c.part(e.ID, e.Now, telemetry.CheckpointReaders, func() bool { return c.takeReader(e) })
	case SinkTaken:
		return c.part(e.ID, e.Now, telemetry.CheckpointSinks, func() bool { return c.takeSink(e) })
	case Stored:
		return c.stored(e)
	case Committed:
		return c.commit(e)
	case Lost:
		return c.abort(e.Reason, e.Err, e.Now)
	case Tick:
		if c.phase == Cutting && e.Now.Sub(c.began) >= c.limits.Timeout {
			return c.abort(telemetry.AbortTimeout, fmt.Errorf("%w after %s: %s", ErrTimeout, c.limits.Timeout, c.missing()), e.Now)
		}
		return nil
	default:
		panic(fmt.Sprintf("checkpoint: unknown event %T", e))
	}
}

func (c *Core) trigger(e Trigger) []Effect {
	if !c.Ready(e.Now) {
		c.stale++
		return nil
	}
	m := c.template
	m.ID, m.Kind, m.Triggered, m.LastAttempt = e.ID, e.Kind, e.Now, e.LastAttempt
	c.manifest, c.phase, c.began, c.phaseFrom = &m, Cutting, e.Now, e.Now
	c.cut, c.readers, c.tasks, c.committed = false, map[sdk.ReaderID]bool{}, map[int]bool{}, map[int]bool{}
	c.size, c.stages, c.early = 0, [5]time.Duration{}, false
	return []Effect{Cut{ID: e.ID, Kind: e.Kind}}
}

// part takes one part of the cut, and writes the manifest when it was the last.
func (c *Core) part(id sdk.CheckpointID, now time.Time, stage telemetry.CheckpointStage, take func() bool) []Effect {
	if c.phase != Cutting || id != c.manifest.ID || !take() {
		c.stale++
		return nil
	}
	c.stages[stage] = now.Sub(c.began) // the last part of its kind wins
	if !c.cut || len(c.readers) < c.template.Parallelism || len(c.tasks) < c.sinks {
		return nil
	}
	m := c.manifest
	slices.SortFunc(m.Readers, func(a, b protocol.ReaderState) int { return int(a.Reader - b.Reader) })
	slices.SortFunc(m.Sinks, func(a, b protocol.SinkState) int { return a.Task - b.Task })
	late := m.Coordinator.Owing || slices.ContainsFunc(m.Readers, func(r protocol.ReaderState) bool { return !r.Ended })
	if m.Kind == protocol.Final && late {
		m.Kind = protocol.Periodic // a reader got a late split, or will get one: the end comes later
		c.early = m.Coordinator.Owing
	}
	m.Completed = now
	c.phase, c.phaseFrom = Storing, now
	return []Effect{Store{Manifest: m}}
}

func (c *Core) takeCoordinator(e CoordinatorTaken) bool {
	if c.cut {
		return false
	}
	c.cut, c.manifest.Coordinator = true, e.State
	return true
}

func (c *Core) takeReader(e ReaderTaken) bool {
	if c.readers[e.State.Reader] {
		return false
	}
	c.readers[e.State.Reader] = true
	c.manifest.Readers = append(c.manifest.Readers, e.State)
	return true
}

func (c *Core) takeSink(e SinkTaken) bool {
	if c.tasks[e.State.Task] {
		return false
	}
	c.tasks[e.State.Task] = true
	c.manifest.Sinks = append(c.manifest.Sinks, e.State)
	return true
}

func (c *Core) stored(e Stored) []Effect {
	if c.phase != Storing || e.ID != c.manifest.ID {
		c.stale++
		return nil
	}
	c.stages[telemetry.CheckpointStore] = e.Now.Sub(c.phaseFrom)
	if e.Err != nil {
		return c.give(telemetry.AbortStore, e.Err, e.Now)
	}
	c.phase, c.phaseFrom, c.size, c.pause = Committing, e.Now, e.Size, 0
	return []Effect{Complete{Manifest: c.manifest}}
}

func (c *Core) commit(e Committed) []Effect {
	if c.phase != Committing || e.ID != c.manifest.ID || c.committed[e.Task] {
		c.stale++
		return nil
	}
	c.committed[e.Task] = true
	if len(c.committed) < c.sinks {
		return nil
	}
	c.stages[telemetry.CheckpointCommit] = e.Now.Sub(c.phaseFrom)
	done := Finished{Manifest: c.manifest, Size: c.size, Began: c.began, Stages: c.stages}
	c.phase, c.manifest = Idle, nil
	if c.early {
		c.holdUntil = e.Now.Add(c.limits.RetryMax) // all readers have ended, so nothing else keeps the next one from following at once
	}
	return []Effect{done}
}

// abort gives the checkpoint up while it is cut. While its manifest is written nobody knows whether it exists, and
// once it is durable it stands: then the lost task is restored from it.
func (c *Core) abort(reason telemetry.AbortReason, err error, now time.Time) []Effect {
	if c.phase != Cutting {
		return nil
	}
	return c.give(reason, err, now)
}

func (c *Core) give(reason telemetry.AbortReason, err error, now time.Time) []Effect {
	a := Aborted{ID: c.manifest.ID, Kind: c.manifest.Kind, Reason: reason, Err: err}
	c.phase, c.manifest = Idle, nil
	c.pause = min(max(2*c.pause, c.limits.RetryInitial), c.limits.RetryMax)
	c.holdUntil = now.Add(c.pause)
	return []Effect{a}
}

// missing says in words what a checkpoint waits for.
func (c *Core) missing() string {
	switch {
	case !c.cut:
		return "the coordinator has not answered"
	case len(c.readers) < c.template.Parallelism:
		return fmt.Sprintf("%d of %d readers have not answered", c.template.Parallelism-len(c.readers), c.template.Parallelism)
	default:
		return fmt.Sprintf("%d of %d sink tasks have not answered", c.sinks-len(c.tasks), c.sinks)
	}
}
