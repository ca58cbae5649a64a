package lineage

import "github.com/penstock-dev/penstock/sdk"

// State is where a shard stands. It is derived from facts whenever somebody asks, and never stored.
type State uint8

const (
	// Discovered is a shard that is known, but not confirmed by a scan, without a concrete position, or not durable yet.
	Discovered State = iota
	// PendingParent is one that could be read if no parent of it were still read.
	PendingParent
	// Active is an open one, being read or ready to be.
	Active
	// Draining is a closed one, being read to its end or ready to be.
	Draining
	// Completed is one of which nothing is ever read again; its children may be read.
	Completed

	numStates
)

// States are all of them, in the order in which a shard goes through them.
var States = [...]State{Discovered, PendingParent, Active, Draining, Completed}

func (s State) String() string {
	switch s {
	case Discovered:
		return "discovered"
	case PendingParent:
		return "pending parent"
	case Active:
		return "active"
	case Draining:
		return "draining"
	case Completed:
		return "completed"
	case numStates:
	}
	return "state(?)"
}

// facts are what is known of a shard. They are only ever added to, with the exceptions that their comments name. The bits are part of
// the stored format.
type facts uint16

const (
	listed    facts = 1 << iota // a complete scan held it, so that what is known of it is confirmed
	closed                      // it takes no records any more
	first                       // it was in the first snapshot
	outside                     // only named as a parent there: it is before everything that is read. Taken back when it is listed after all
	started                     // it was given to a reader once, so its parents do not matter any more
	completed                   // nothing of it is left to read, and a completed checkpoint says so
	lost                        // completed without having been read to its end
	skipped                     // completed without having been read: it ended before the start
	stopped                     // completed at the stop of a bounded job: its children are after it
	gone                        // unfinished, and scans do not list it any more. Taken back when the loss is accepted

	allFacts = gone<<1 - 1
)

// nobody owns what no reader holds.
const nobody = sdk.ReaderID(-1)

// node is a shard. Everything but id and the adjacency is a fact or follows from an event.
type node struct {
	id       string
	facts    facts
	parents  []string // at most two
	children []*node
	// position is where it is to be read from while no reader holds it. hashes are its hash keys, as far as they are known.
	position Position
	hashes   HashRange

	held    bool // a reader has it
	owner   sdk.ReaderID
	ended   bool // its reader reported the end; no completed checkpoint may hold that yet
	queued  bool // in Topology.queue
	since   ScanID
	seen    ScanID
	missing int // complete scans in a row that did not list it
}

func (n *node) is(f facts) bool { return n.facts&f != 0 }

// unresolved reports that n is part of the batch that waits for concrete starts. Only shards of the first snapshot ever are.
func (n *node) unresolved() bool {
	return n.is(first) && !n.is(started|completed) && !n.position.Concrete()
}

// HashRange is the range of hash keys whose records belong to a shard, both ends included, as 128-bit numbers in big-endian order.
type HashRange struct {
	Known      bool
	Start, End [16]byte
}

// Node describes a shard to whoever drives the topology. It is a copy.
type Node struct {
	ID       string
	Parents  []string // read only
	State    State
	Position Position // where to read from; meaningless while a reader holds it
	Hashes   HashRange
	Closed   bool
	Lost     bool
	Skipped  bool // it ended before the start
	Outside  bool // never listed, and before everything that is read
	Gone     bool // not listed any more although it is unfinished
	Held     bool
}
