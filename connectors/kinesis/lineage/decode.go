package lineage

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock-dev/penstock/sdk"
)

// Decode reads what Encode wrote and nothing else. A restored state is in a completed checkpoint, so its shards wait for none. What it
// holds as with a reader is so until it is returned. A state of another identity is [sdk.ErrIncompatibleState], one that does not parse
// [sdk.ErrCorrupt].
func Decode(state sdk.VersionedBytes, cfg Config) (*Topology, error) {
	if state.Version != Version {
		return nil, sdk.UnknownVersion("kinesis lineage", state.Version, Version)
	}
	t := New(cfg)
	in := &Reader{Rest: state.Data}
	t.firstDone = in.Number("first snapshot flag", 1) == 1
	t.created = int64(in.Number("time of creation", math.MaxInt64))
	t.stop = int64(in.Number("stop", math.MaxInt64))
	var identity []sdk.Attribute
	for n := in.count("number of identity attributes", 2); n > 0 && in.Err == nil; n-- {
		identity = append(identity, sdk.Attribute{Name: in.Text("attribute name"), Value: in.Text("attribute value")})
	}
	n := in.count("number of shards", minNode)
	t.nodes = make(map[string]*node, n)
	t.ascending = make([]*node, 0, n)
	before := ""
	for ; n > 0 && in.Err == nil; n-- {
		if node := in.node(before); in.Err == nil {
			before = node.id
			t.nodes[node.id] = node
			t.ascending = append(t.ascending, node)
		}
	}
	if in.Err == nil {
		t.restore(in)
	}
	if in.End(); in.Err != nil {
		return nil, fmt.Errorf("kinesis lineage: %w", in.Err)
	}
	if err := compare(identity, cfg.Identity); err != nil {
		return nil, err
	}
	t.open = t.firstDone && t.unresolved == 0
	t.accepted = t.accept()
	t.touchAll()
	return t, nil
}

// restore rebuilds what follows from the facts.
func (t *Topology) restore(in *Reader) {
	for _, n := range t.ascending {
		for _, id := range n.parents {
			p := t.nodes[id]
			switch {
			case p != nil:
				p.children = append(p.children, n)
			case !n.is(started | completed):
				in.Fail("shard %q waits for %q, which is not there", n.id, id)
				return
			}
		}
		if n.unresolved() {
			t.unresolved++
		}
		if n.is(gone) {
			t.gone++
		}
	}
	if !t.firstDone && len(t.ascending) > 0 && t.unresolved > 0 {
		in.Fail("a batch of starts without a first snapshot")
	}
}

// minNode is the shortest shard: prefix, length, one letter, facts, parents.
const minNode = 5

func (r *Reader) node(before string) *node {
	n := &node{owner: nobody}
	n.id = r.shared("shard id", before)
	flags := r.Number("facts", uint64(allFacts)|heldFlag)
	n.facts, n.held = facts(flags&^heldFlag), flags&heldFlag != 0
	for k := r.Number("number of parents", maxParents); k > 0 && r.Err == nil; k-- {
		n.parents = append(n.parents, r.shared("parent", n.id))
	}
	if r.Err != nil {
		return n
	}
	switch {
	case !legalID(n.id) || n.id <= before:
		r.Fail("shard ids are not in their order at %.40q", n.id)
	case n.held && !n.is(started), n.is(completed) && (n.held || n.is(outside|gone)), n.is(outside) && n.is(started|listed):
		r.Fail("shard %q has the facts %b", n.id, flags)
	}
	for i, p := range n.parents {
		if !legalID(p) || p == n.id || i > 0 && p == n.parents[0] {
			r.Fail("shard %q has the parents %.80q", n.id, n.parents)
		}
	}
	if r.Err == nil && n.placed() {
		n.position, n.hashes = r.Position(), r.Hashes()
		if r.Err == nil && n.is(started) && !n.position.Concrete() {
			r.Fail("shard %q was given back without a position", n.id)
		}
	}
	return n
}

// Reader takes fields of version 1 off the front of untrusted bytes. After the first failure everything it answers is zero. The connector
// stores its splits with the same fields.
type Reader struct {
	Rest []byte
	Err  error
}

// Fail records a failure, unless there is one.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%w: %s", sdk.ErrCorrupt, fmt.Sprintf(format, args...))
		r.Rest = nil
	}
}

// End fails when bytes are left.
func (r *Reader) End() {
	if len(r.Rest) > 0 {
		r.Fail("%d bytes after the end", len(r.Rest))
	}
}

// Number reads a number up to most.
func (r *Reader) Number(what string, most uint64) uint64 {
	if r.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.Rest)
	switch {
	case n <= 0:
		r.Fail("%s is missing or cut off", what)
	case n > 1 && r.Rest[n-1] == 0:
		r.Fail("%s is not in its shortest form", what)
	case v > most:
		r.Fail("%s is %d, at most %d is possible", what, v, most)
	default:
		r.Rest = r.Rest[n:]
		return v
	}
	return 0
}

// count reads how many of something follow. Each takes some bytes at least, which bounds what a flipped bit makes us allocate.
func (r *Reader) count(what string, each int) uint64 {
	n := r.Number(what, 1<<62)
	if n > uint64(len(r.Rest)/each) {
		r.Fail("%s is %d, in %d bytes", what, n, len(r.Rest))
		return 0
	}
	return n
}

// Text reads a length and so many bytes.
func (r *Reader) Text(what string) string { return string(r.take(int(r.count(what, 1)))) }

func (r *Reader) take(n int) []byte {
	out := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return out
}

func (r *Reader) shared(what, other string) string {
	shared := int(r.Number(what, uint64(len(other))))
	text := other[:shared] + r.Text(what)
	if sharedPrefix(other, text) != shared {
		r.Fail("%s %.40q is not in its shortest form", what, text)
	}
	return text
}

// Position reads a position.
func (r *Reader) Position() Position {
	p := Position{Kind: Kind(r.Number("kind of a position", uint64(numKinds-1)))}
	if p.Kind != Unresolved {
		p.Sub = Whole
	}
	switch p.Kind {
	case AtTimestamp:
		p.Millis = int64(r.Number("time of a position", math.MaxInt64))
	case AtSequence:
		p.Sequence = r.Text("sequence number")
	case AfterSequence:
		p.Sequence = r.Text("sequence number")
		p.Sub = int64(r.Number("part", math.MaxInt64)) - 1
		p.Millis = int64(r.Number("time of a record", math.MaxInt64))
	case Unresolved, TrimHorizon, numKinds:
	}
	if err := p.check(); err != nil && r.Err == nil && p.Kind != Unresolved {
		r.Fail("position: %v", err)
	}
	if r.Err != nil {
		return Position{}
	}
	return p
}

// Hashes reads hash keys.
func (r *Reader) Hashes() HashRange {
	var h HashRange
	if r.Number("hash keys", 1) == 0 {
		return h
	}
	if len(r.Rest) < len(h.Start)+len(h.End) {
		r.Fail("hash keys are cut off")
		return h
	}
	h.Known = true
	copy(h.Start[:], r.take(len(h.Start)))
	copy(h.End[:], r.take(len(h.End)))
	return h
}
