package lineage

import (
	"fmt"
	"slices"
)

// ScanID numbers scans in the order in which they were begun, within one life of a topology.
type ScanID uint64

// Shard is what a list of shards says of one.
type Shard struct {
	ID      string
	Parents []string // at most two
	Closed  bool
	Hashes  HashRange
}

// Scan is a complete list of the shards that a stream has now.
type Scan struct {
	// Created is when the stream was created, in milliseconds since 1970; 0 when that is not known.
	Created int64
	Shards  []Shard
}

// Initial says where a shard of the first snapshot is read from.
type Initial struct {
	// Position is where; [Unresolved] makes it part of a batch that [Topology.Resolve] answers.
	Position Position
	// Skip says that the shard ended before the start: it is completed without having been read.
	Skip bool
}

// Changes is what a scan changed, for the log and the metrics.
type Changes struct {
	Stale bool     // a newer scan was begun or applied: nothing was changed
	Found []string // new shards, in the order of the scan
	Gone  []string // unfinished shards that count as gone from now on
	Lost  []string // completed as lost, because the policy is to go on
	// Missed is how many unfinished shards this scan did not list: another one soon shows whether they are gone.
	Missed int
	First  bool // this was the first snapshot
}

// Begin numbers a scan that starts now. Whatever the topology learns while it runs is not expected to be in it.
func (t *Topology) Begin() ScanID {
	t.begun++
	return t.begun
}

// Apply records a complete scan, or nothing: when it is stale, which the changes say, and when the error says what is wrong with it.
// initial is asked for each shard of the first snapshot, in the scan's order, and never again: what is found later is read from its
// trim horizon, because all of it came after the job began.
func (t *Topology) Apply(id ScanID, scan Scan, initial func(Shard) Initial) (Changes, error) {
	if id != t.begun || id <= t.applied {
		return Changes{Stale: true}, nil
	}
	if err := t.check(scan); err != nil {
		return Changes{}, err
	}
	t.applied = id
	if scan.Created != 0 {
		t.created = scan.Created
	}
	changes := Changes{First: !t.firstDone}
	for _, s := range scan.Shards {
		t.see(id, s, initial, &changes)
	}
	for _, n := range t.sorted() {
		if n.seen != id {
			t.miss(n, id, &changes)
		}
	}
	t.forget()
	if changes.First {
		t.firstDone = true
		t.batch++
	}
	// Parents may stand behind their children in a scan, so nobody is ready before all of it was seen.
	for _, s := range scan.Shards {
		t.touch(t.nodes[s.ID])
	}
	return changes, nil
}

// check refuses what is no list of the shards of this stream.
func (t *Topology) check(scan Scan) error {
	if t.created != 0 && scan.Created != 0 && scan.Created != t.created {
		return ErrRecreated
	}
	if len(scan.Shards) == 0 {
		return fmt.Errorf("%w: it is empty, and every stream has a shard", ErrScan)
	}
	seen := make(map[string]struct{}, len(scan.Shards))
	for _, s := range scan.Shards {
		_, twice := seen[s.ID]
		switch {
		case !legalID(s.ID):
			return fmt.Errorf("%w: %.40q is no shard id", ErrScan, s.ID)
		case twice:
			return fmt.Errorf("%w: %s is in it twice", ErrScan, s.ID)
		case len(s.Parents) > maxParents:
			return fmt.Errorf("%w: %s has %d parents", ErrScan, s.ID, len(s.Parents))
		case slices.Contains(s.Parents, s.ID), len(s.Parents) == maxParents && s.Parents[0] == s.Parents[1]:
			return fmt.Errorf("%w: %s cannot have the parents %v", ErrScan, s.ID, s.Parents)
		case slices.ContainsFunc(s.Parents, func(p string) bool { return !legalID(p) }):
			return fmt.Errorf("%w: %s has a parent without a legal id: %.80q", ErrScan, s.ID, s.Parents)
		}
		seen[s.ID] = struct{}{}
	}
	return nil
}

// maxParents: a split has one parent, a merge two.
const maxParents = 2

// maxID bounds a shard id in bytes, as Kinesis does.
const maxID = 128

func legalID(id string) bool { return id != "" && len(id) <= maxID }

// see records one shard of a scan.
func (t *Topology) see(id ScanID, s Shard, initial func(Shard) Initial, changes *Changes) {
	n := t.nodes[s.ID]
	known := n != nil
	if !known {
		n = t.learn(s.ID)
	}
	if !known || !n.is(listed) {
		changes.Found = append(changes.Found, s.ID)
	}
	confirmed := n.is(listed)
	n.seen, n.missing = id, 0
	n.facts |= listed
	n.facts &^= outside // it exists after all; nothing before it was read, so it is read from its beginning
	if s.Closed {
		n.facts |= closed
	}
	before := facts(0)
	if changes.First {
		n.facts |= first
		before = outside
	}
	t.adopt(n, s.Parents, before)
	if n.is(completed) || confirmed && n.position.Concrete() {
		return
	}
	if !n.is(started) {
		n.hashes = s.Hashes
	}
	switch {
	case n.is(started), n.position.Concrete(), confirmed: // confirmed without a position: part of the batch
	case changes.First:
		t.start(n, initial(s))
	default:
		n.position = FromTrimHorizon()
	}
}

// start places a shard of the first snapshot.
func (t *Topology) start(n *node, i Initial) {
	switch {
	case i.Skip:
		t.unresolved++ // which complete takes back
		t.complete(n, skipped)
	case i.Position.Concrete():
		n.position = i.Position
	default:
		t.unresolved++
	}
}

// forgetAfter is how many scans in a row must miss a completed shard before it is forgotten: enough that no gap in a list makes it start
// again, few enough that the state of a stream that is resharded often follows what exists.
const forgetAfter = 100

// forget drops completed shards that are not listed any more and that no shard waits for: all of their children have been given to a
// reader. A completed shard without a child is kept, because its child may still be found.
func (t *Topology) forget() {
	for _, n := range t.sorted() {
		old := n.is(completed) && n.missing >= forgetAfter || n.is(outside) && !n.is(listed)
		if !old || len(n.children) == 0 || slices.ContainsFunc(n.children, func(c *node) bool { return !c.is(started | completed) }) {
			continue
		}
		delete(t.nodes, n.id)
		t.stale = true
		for _, id := range n.parents {
			if p := t.nodes[id]; p != nil {
				p.children = slices.DeleteFunc(p.children, func(c *node) bool { return c == n })
			}
		}
	}
}
