package lineage

import "slices"

// End says how the reading of a shard ended.
type End uint8

const (
	// AtEnd says that the shard is closed and was read to its last record.
	AtEnd End = iota
	// AtStop says that the stop of a bounded job was reached.
	AtStop
	// AsLost says that the rest of the shard expired before it was read, and that the policy is to go on.
	AsLost

	numEnds
)

func (e End) String() string {
	switch e {
	case AtEnd:
		return "end"
	case AtStop:
		return "stop"
	case AsLost:
		return "lost"
	case numEnds:
	}
	return "end(?)"
}

// Ended takes a reader's word that it read a shard to its end. That completes nothing: records of the shard may still be taken back by a
// crash, and its children would be ahead of them. It reports that a checkpoint which contains the end is worth asking for. children are
// hints: they are read only after a scan has confirmed them, and are not missed by scans before that.
func (t *Topology) Ended(id string, children []string) bool {
	n := t.nodes[id]
	if n == nil || n.is(completed) || !n.held {
		return false
	}
	n.ended = true
	t.hint(children)
	return true
}

// Finished says that a completed checkpoint contains the end of a shard, which completes it and lets its children go. It may be told
// twice. In a job without checkpoints the reader's word is all there is, and this is called with it.
func (t *Topology) Finished(id string, how End, children []string) {
	n := t.nodes[id]
	if n == nil {
		n = t.learn(id)
		n.facts |= listed
	}
	if n.is(completed) {
		return
	}
	t.begin(n)
	t.hint(children)
	switch how {
	case AtStop:
		t.complete(n, stopped)
	case AsLost:
		t.complete(n, lost)
	case AtEnd, numEnds:
		t.complete(n, 0)
	}
}

// hint learns the names of children. Whose children they are is left to scans, which know it for sure.
func (t *Topology) hint(children []string) {
	for _, id := range children {
		if legalID(id) && t.nodes[id] == nil {
			t.learn(id)
		}
	}
}

// Done reports that a bounded job has read everything: all shards are completed, and the children of those that were read to their end
// were found.
func (t *Topology) Done() bool {
	if !t.firstDone || t.unresolved > 0 || !t.open {
		return false
	}
	for _, n := range t.nodes {
		switch {
		case n.is(outside):
		case !n.is(completed):
			return false
		case !n.is(lost|skipped|stopped) && len(n.children) == 0:
			return false
		}
	}
	return true
}

// Childless reports that no scan has shown a child of the shard yet: when it was read to its end, another scan is worth its call.
func (t *Topology) Childless(id string) bool {
	n := t.nodes[id]
	return n != nil && !slices.ContainsFunc(n.children, func(c *node) bool { return c.is(listed) })
}
