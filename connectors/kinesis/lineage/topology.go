package lineage

import (
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// Config of a [Topology]. It is not part of the state: a restart may change it.
type Config struct {
	// Continue goes on when an unfinished shard disappears: it is completed as lost. Otherwise [Topology.Problem] names it
	// and nothing more is scheduled.
	Continue bool
	// Misses is how many complete scans in a row must not list an unfinished shard before it counts as gone; 0 means [DefaultMisses].
	// One is too few: a list is no consistent snapshot while a stream is resharded.
	Misses int
	// Parallelism is the number of readers.
	Parallelism int
	// Identity is the configuration that the state depends on. It is stored, and compared when a state is read; nil compares nothing.
	Identity []sdk.Attribute
}

// DefaultMisses is the default of [Config.Misses].
const DefaultMisses = 3

// Topology is every shard that was ever seen and not forgotten, with the order in which they may be read. It is a pure core: no
// goroutine, clock, or I/O. One goroutine owns it.
type Topology struct {
	cfg   Config
	nodes map[string]*node
	// ascending holds the nodes by id, rebuilt when stale.
	ascending []*node
	stale     bool

	created   int64 // when the stream was created, in milliseconds since 1970, 0 while unknown
	stop      int64 // where a bounded job ends, in milliseconds since 1970, 0 for never
	firstDone bool
	open      bool             // a completed checkpoint holds the settled first snapshot
	contained sdk.CheckpointID // the first snapshot that holds it, 0 while there is none
	begun     ScanID           // the newest scan that was begun
	applied   ScanID
	batch     BatchID

	unresolved int // nodes that wait for a concrete start
	gone       int
	accepted   []string // lost when the state was read under another policy
	queue      []*node  // ready, oldest first; may hold some that are not any more
	owned      []int    // shards by reader
}

// New returns an empty topology, for a new job.
func New(cfg Config) *Topology {
	if cfg.Misses <= 0 {
		cfg.Misses = DefaultMisses
	}
	return &Topology{cfg: cfg, nodes: make(map[string]*node), owned: make([]int, cfg.Parallelism)}
}

// FirstDone reports that a first snapshot was taken: what is found from now on is new.
func (t *Topology) FirstDone() bool { return t.firstDone }

// Created is when the stream was created, in milliseconds since 1970; 0 while unknown.
func (t *Topology) Created() int64 { return t.created }

// Stop is where a bounded job ends, in milliseconds since 1970; 0 for never.
func (t *Topology) Stop() int64 { return t.stop }

// SetStop makes the stop concrete, once: a later call changes nothing.
func (t *Topology) SetStop(millis int64) {
	if t.stop == 0 {
		t.stop = millis
	}
}

// Recall takes from a shard that is returned what a first scan would tell: when the stream was created, and where the job stops. What is known
// stays.
func (t *Topology) Recall(created, stop int64) {
	if t.created == 0 {
		t.created = created
	}
	t.SetStop(stop)
}

// Accepted are the shards that were taken for lost when the state was read, because the policy is to go on now.
func (t *Topology) Accepted() []string { return t.accepted }

// Len is the number of shards that are kept.
func (t *Topology) Len() int { return len(t.nodes) }

// Count returns how many shards are in each state, by [State].
func (t *Topology) Count() [len(States)]int {
	var count [len(States)]int
	for _, n := range t.nodes {
		count[t.state(n)]++
	}
	return count
}

// Nodes returns every shard, ascending by id.
func (t *Topology) Nodes() []Node {
	nodes := make([]Node, 0, len(t.nodes))
	for _, n := range t.sorted() {
		nodes = append(nodes, t.describe(n))
	}
	return nodes
}

// Node returns one shard.
func (t *Topology) Node(id string) (Node, bool) {
	n := t.nodes[id]
	if n == nil {
		return Node{}, false
	}
	return t.describe(n), true
}

func (t *Topology) describe(n *node) Node {
	return Node{
		ID: n.id, Parents: n.parents, State: t.state(n), Position: n.position, Hashes: n.hashes,
		Closed: n.is(closed), Lost: n.is(lost), Skipped: n.is(skipped), Outside: n.is(outside), Gone: n.is(gone), Held: n.held,
	}
}

// state derives where a shard stands. A started one stays where it is whatever becomes known of its parents.
func (t *Topology) state(n *node) State {
	switch {
	case n.is(completed | outside):
		return Completed
	case n.is(started):
	case !n.is(listed), !n.position.Concrete(), !t.open:
		return Discovered
	case t.blocked(n):
		return PendingParent
	}
	if n.is(closed) {
		return Draining
	}
	return Active
}

// blocked reports a parent that is still to be read. A parent that nobody knows was forgotten, long after it was completed.
func (t *Topology) blocked(n *node) bool {
	return slices.ContainsFunc(n.parents, func(id string) bool {
		p := t.nodes[id]
		return p != nil && !p.is(completed|outside)
	})
}

func (t *Topology) sorted() []*node {
	if t.stale {
		t.stale = false
		t.ascending = make([]*node, 0, len(t.nodes))
		for _, n := range t.nodes {
			t.ascending = append(t.ascending, n)
		}
		slices.SortFunc(t.ascending, func(a, b *node) int { return strings.Compare(a.id, b.id) })
	}
	return t.ascending
}

// learn adds a shard that nothing is known of but its name. Scans that have begun before cannot be expected to hold it.
func (t *Topology) learn(id string) *node {
	n := &node{id: id, owner: nobody, since: t.begun}
	t.nodes[id] = n
	t.stale = true
	return n
}

// adopt tells n who its parents are, which never changes. Parents that are not known are learnt, unless n has been read: then they
// do not matter any more.
func (t *Topology) adopt(n *node, parents []string, known facts) {
	if len(n.parents) > 0 || len(parents) == 0 {
		return
	}
	n.parents = slices.Clone(parents)
	for _, id := range parents {
		p := t.nodes[id]
		if p == nil {
			if n.is(started | completed) {
				continue
			}
			p = t.learn(id)
			p.facts |= known
		}
		p.children = append(p.children, n)
	}
}

// touch looks whether n is ready now. It is called when a fact changed that may matter, and costs the same for any number of shards.
func (t *Topology) touch(n *node) {
	if !n.queued && t.ready(n) {
		n.queued = true
		t.queue = append(t.queue, n)
	}
}

func (t *Topology) touchAll() {
	for _, n := range t.sorted() {
		t.touch(n)
	}
}

// ready is the rule of this package: confirmed, concrete, durable, and behind all parents. While the start of one shard is unresolved
// none is ready, whatever became of that shard meanwhile: the gate opens for the batch as a whole.
func (t *Topology) ready(n *node) bool {
	switch {
	case n.held, n.is(completed | outside | gone):
		return false
	case n.is(started):
		return true // given back by a reader: it was ready once
	case t.gone > 0:
		return false
	}
	s := t.state(n)
	return s == Active || s == Draining
}

// complete ends a shard and lets its children go.
func (t *Topology) complete(n *node, how facts) {
	if n.is(completed) {
		return
	}
	t.release(n)
	if n.unresolved() {
		t.unresolved--
	}
	n.facts |= completed | how
	n.facts &^= outside
	n.missing = 0
	if n.is(gone) {
		n.facts &^= gone
		t.gone--
	}
	n.position, n.hashes = Position{}, HashRange{}
	for _, c := range n.children {
		t.touch(c)
	}
}

// release takes n from its reader.
func (t *Topology) release(n *node) {
	if n.held && n.owner != nobody {
		t.owned[n.owner]--
	}
	n.held, n.owner = false, nobody
}

func (t *Topology) hold(n *node, reader sdk.ReaderID) {
	t.release(n)
	n.held, n.owner = true, reader
	t.owned[reader]++
}
