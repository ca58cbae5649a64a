package lineage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrLost marks a shard that disappeared before it was read to its end: what it held is lost.
	ErrLost = errors.New("a shard disappeared before it was read to its end")
	// ErrRecreated marks a stream that was deleted and created anew under its name: saved positions belong to the old one.
	ErrRecreated = errors.New("the stream was created anew under its name")
	// ErrScan marks a list of shards that cannot be one. It is not applied.
	ErrScan = errors.New("not a list of shards")
	// ErrPositions marks an answer that does not resolve the start of every shard that waits for one. It is not applied.
	ErrPositions = errors.New("not the positions that were asked for")
)

// Error names the unfinished shards that are not listed any more. It unwraps to [ErrLost].
type Error struct {
	Shards []string // ascending
}

func (e *Error) Error() string {
	const shown = 5
	names := strings.Join(e.Shards[:min(len(e.Shards), shown)], ", ")
	if more := len(e.Shards) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%v: %s: retention was shorter than the time in which they were to be read", ErrLost, names)
}

// Unwrap returns [ErrLost].
func (e *Error) Unwrap() error { return ErrLost }

// Problem returns the [Error] of what is known to be gone, or nil. It is part of the state, so it outlives restarts, until the
// topology is decoded with the policy to go on.
func (t *Topology) Problem() error {
	if t.gone == 0 {
		return nil
	}
	e := &Error{}
	for _, n := range t.sorted() {
		if n.is(gone) {
			e.Shards = append(e.Shards, n.id)
		}
	}
	return e
}

// miss counts a complete scan that did not list n, and decides what that means. Shards that only a reader named are not expected to be
// listed: the scan may be older than what the reader saw.
func (t *Topology) miss(n *node, id ScanID, changes *Changes) {
	switch {
	case n.is(completed):
		n.missing++
		return
	case n.is(outside), n.ended, id <= n.since:
		return
	case !n.is(listed) && !t.named(n):
		return
	}
	n.missing++
	changes.Missed++
	if n.missing < t.cfg.Misses || n.is(gone) {
		return
	}
	switch {
	case !t.cfg.Continue:
		n.facts |= gone
		t.gone++
		changes.Gone = append(changes.Gone, n.id)
	case n.held:
		// Its reader finds out, and says what it could still read.
	default:
		t.complete(n, lost)
		changes.Lost = append(changes.Lost, n.id)
	}
}

// named reports that a listed shard that is still to be read has n as a parent.
func (t *Topology) named(n *node) bool {
	return slices.ContainsFunc(n.children, func(c *node) bool { return c.is(listed) && !c.is(started|completed) })
}

// accept takes what a state holds as gone for lost, when the policy says so now. One that is with a reader is left to it.
func (t *Topology) accept() (accepted []string) {
	if !t.cfg.Continue || t.gone == 0 {
		return nil
	}
	for _, n := range t.sorted() {
		switch {
		case !n.is(gone):
		case n.held:
			n.facts &^= gone
			t.gone--
		default:
			t.complete(n, lost)
			accepted = append(accepted, n.id)
		}
	}
	return accepted
}
