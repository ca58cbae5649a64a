package lineage

import (
	"fmt"
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// Ready returns the shards that may be given to a reader now, in the order in which they became so. Nothing is ready while a lineage error
// stands.
func (t *Topology) Ready() []Node {
	t.queue = slices.DeleteFunc(t.queue, func(n *node) bool {
		n.queued = t.ready(n)
		return !n.queued
	})
	if t.gone > 0 {
		return nil
	}
	nodes := make([]Node, len(t.queue))
	for i, n := range t.queue {
		nodes[i] = t.describe(n)
	}
	return nodes
}

// Waiting reports that some shard is ready.
func (t *Topology) Waiting() int { return len(t.queue) }

// Owned is how many shards each reader holds. It is read only and valid until the next call.
func (t *Topology) Owned() []int { return t.owned }

// Assigned says that a reader was given a shard.
func (t *Topology) Assigned(id string, reader sdk.ReaderID) error {
	n := t.nodes[id]
	if n == nil || !t.ready(n) {
		return fmt.Errorf("shard %s was assigned although it is not ready", id)
	}
	if err := t.knownReader(reader); err != nil {
		return err
	}
	n.facts |= started
	n.position, n.hashes = Position{}, HashRange{}
	t.hold(n, reader)
	return nil
}

func (t *Topology) knownReader(reader sdk.ReaderID) error {
	if reader < 0 || int(reader) >= len(t.owned) {
		return fmt.Errorf("reader %d, but the parallelism is %d", reader, len(t.owned))
	}
	return nil
}

// Returned takes a shard back that no reader holds any more, at the place where it is to be read on. It reports false for one that a
// completed checkpoint holds as finished, which stays so.
func (t *Topology) Returned(id string, at Position, hashes HashRange) bool {
	n := t.nodes[id]
	if n == nil {
		n = t.learn(id)
		n.facts |= listed // whoever read it knew it from a scan
	}
	if n.is(completed) {
		return false
	}
	t.begin(n)
	t.release(n)
	n.ended = false
	n.position, n.hashes = at, hashes
	t.touch(n)
	return true
}

// begin notes that n was given to a reader once, perhaps later than this state says.
func (t *Topology) begin(n *node) {
	if n.unresolved() {
		t.unresolved--
		t.batch++ // an answer on its way would be for a shard that is read already
	}
	n.facts |= started
	n.facts &^= outside
}

// Registered takes over what a new attempt of a reader holds, and what it has read to its end without a completed checkpoint that says so.
// This state may be older than what the reader did since: held shards are taken out of whatever it has them in.
func (t *Topology) Registered(reader sdk.ReaderID, held, ended []string) error {
	if err := t.knownReader(reader); err != nil {
		return err
	}
	for _, id := range slices.Concat(held, ended) {
		if !legalID(id) {
			return fmt.Errorf("reader %d holds %.40q, which is no shard id", reader, id)
		}
	}
	if t.owned[reader] > 0 {
		for _, n := range t.nodes {
			if n.held && n.owner == reader {
				t.release(n)
				n.held = true // somebody's until it is returned
			}
		}
	}
	for _, id := range held {
		t.take(id, reader)
	}
	for _, id := range ended {
		if n := t.take(id, reader); n != nil {
			n.ended = true
		}
	}
	return nil
}

func (t *Topology) take(id string, reader sdk.ReaderID) *node {
	n := t.nodes[id]
	if n == nil {
		n = t.learn(id)
		n.facts |= listed
	}
	if n.is(completed) {
		return nil
	}
	t.begin(n)
	n.position, n.hashes = Position{}, HashRange{}
	t.hold(n, reader)
	return n
}
