package lineage

import (
	"encoding/binary"

	"github.com/penstock-dev/penstock/sdk"
)

// Version is the version of the stored state that this build writes.
//
// Version 1, all numbers unsigned varints in their shortest form, all texts with their length before them:
//
//	1 when a first snapshot was taken, else 0
//	when the stream was created; where the job stops; both in milliseconds since 1970, 0 for unknown and never
//	number of identity attributes, then name and value of each
//	number of shards, then for each, ascending by id:
//	    length of the prefix shared with the id before, then the rest of the id
//	    facts, as bits; 2^10 says that it is with a reader, or was when the state was taken
//	    number of parents, then for each the length of the prefix shared with the shard's own id, then the rest
//	    for one that is to be read and is not with a reader: the position, then the hash keys
//
//	a position is its kind, then what belongs to the kind: milliseconds; the sequence number as text; that, part+1 and milliseconds
//	hash keys are 0, or 1 and twice 16 bytes
//
// Equal states have equal bytes. Ids share most of their text, so a shard that was read costs about ten bytes.
const Version = 1

// heldFlag stands beside the facts.
const heldFlag = uint64(allFacts + 1)

// Encode writes the state.
func (t *Topology) Encode() sdk.VersionedBytes {
	nodes := t.sorted()
	b := make([]byte, 0, 64+24*len(nodes))
	b = append(b, bit(t.firstDone))
	b = binary.AppendUvarint(b, uint64(t.created))
	b = binary.AppendUvarint(b, uint64(t.stop))
	b = binary.AppendUvarint(b, uint64(len(t.cfg.Identity)))
	for _, a := range t.cfg.Identity {
		b = appendText(appendText(b, a.Name), a.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(nodes)))
	before := ""
	for _, n := range nodes {
		b = appendNode(b, n, before)
		before = n.id
	}
	return sdk.VersionedBytes{Version: Version, Data: b}
}

func appendNode(b []byte, n *node, before string) []byte {
	b = appendShared(b, before, n.id)
	flags := uint64(n.facts)
	if n.held {
		flags |= heldFlag
	}
	b = binary.AppendUvarint(b, flags)
	b = binary.AppendUvarint(b, uint64(len(n.parents)))
	for _, p := range n.parents {
		b = appendShared(b, n.id, p)
	}
	if !n.placed() {
		return b
	}
	b = AppendPosition(b, n.position)
	return AppendHashes(b, n.hashes)
}

// placed reports that the stored form of n has a position.
func (n *node) placed() bool { return !n.held && !n.is(completed|outside) }

// AppendPosition writes a position as version 1 of this package does.
func AppendPosition(b []byte, p Position) []byte {
	b = append(b, byte(p.Kind))
	switch p.Kind {
	case AtTimestamp:
		b = binary.AppendUvarint(b, uint64(p.Millis))
	case AtSequence:
		b = appendText(b, p.Sequence)
	case AfterSequence:
		b = binary.AppendUvarint(appendText(b, p.Sequence), uint64(p.Sub+1))
		b = binary.AppendUvarint(b, uint64(p.Millis))
	case Unresolved, TrimHorizon, numKinds:
	}
	return b
}

// AppendHashes writes hash keys as version 1 of this package does.
func AppendHashes(b []byte, h HashRange) []byte {
	if !h.Known {
		return append(b, 0)
	}
	return append(append(append(b, 1), h.Start[:]...), h.End[:]...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendShared writes text as what differs from another one.
func appendShared(b []byte, other, text string) []byte {
	shared := sharedPrefix(other, text)
	return appendText(binary.AppendUvarint(b, uint64(shared)), text[shared:])
}

func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}
