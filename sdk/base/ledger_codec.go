package base

import (
	"encoding/binary"
	"fmt"

	"github.com/penstock-dev/penstock/sdk"
)

// stateVersion is the version of the enumerator's stored state.
//
// Version 1, all numbers unsigned varints, all texts with their length before them:
//
//	1 when a discovery has been recorded, else 0
//	number of identity attributes, then name and value of each
//	version of the split encoding
//	number of splits, then for each, ascending by id:
//	    length of the prefix shared with the id before, then the rest of the id
//	    phase, plus 8 when it was reported as removed
//	    the encoded split, when the phase is gated or waiting
//
// Equal states have equal bytes. Ids share most of their text, so a split that needs no position costs a few bytes.
const stateVersion = 1

const removedFlag = 8

// minSplitBytes is the shortest split: prefix, length, one letter and phase.
const minSplitBytes = 4

// encodeState writes the ledger.
func encodeState[S sdk.Split](l *ledger[S], identity []sdk.Attribute, codec sdk.Codec[S]) (sdk.VersionedBytes, error) {
	entries := l.sorted()
	b := make([]byte, 0, 64+16*len(entries))
	b = append(b, bit(l.firstDone))
	b = binary.AppendUvarint(b, uint64(len(identity)))
	for _, a := range identity {
		b = appendText(appendText(b, a.Name), a.Value)
	}
	b = binary.AppendUvarint(b, uint64(codec.Version()))
	b = binary.AppendUvarint(b, uint64(len(entries)))
	var before sdk.SplitID
	for _, e := range entries {
		shared := sharedPrefix(before, e.id)
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendText(b, e.id[shared:])
		b = append(b, byte(e.phase)|removedFlag*bit(e.removed))
		before = e.id
		if e.phase != gated && e.phase != waiting {
			continue
		}
		data, err := codec.Encode(e.split)
		if err != nil {
			return sdk.VersionedBytes{}, fmt.Errorf("enumerator state: encode split %q: %w", e.id, err)
		}
		b = appendText(b, data)
	}
	return sdk.VersionedBytes{Version: stateVersion, Data: b}, nil
}

// decodeState reads what encodeState wrote and nothing else. A split that was gated is in a completed checkpoint now, so it
// waits.
func decodeState[S sdk.Split](state sdk.VersionedBytes, parallelism int, codec sdk.Codec[S]) (*ledger[S], []sdk.Attribute, error) {
	if state.Version != stateVersion {
		return nil, nil, sdk.UnknownVersion("enumerator state", state.Version, stateVersion)
	}
	d := stateReader{rest: state.Data}
	l := newLedger[S](parallelism)
	l.firstDone = d.oneOf("discovery flag", 1) == 1
	var identity []sdk.Attribute
	for n := d.count("number of identity attributes", 2); n > 0 && d.err == nil; n-- {
		identity = append(identity, sdk.Attribute{Name: string(d.text("length of an attribute name")), Value: string(d.text("length of an attribute value"))})
	}
	splitVersion := d.oneOf("split version", 1<<31-1)
	n := d.count("number of splits", minSplitBytes)
	l.entries = make(map[sdk.SplitID]*entry[S], n)
	l.ascending = make([]*entry[S], 0, n)
	entries := make([]entry[S], n) // at once: a hundred thousand are read on the coordinator loop
	before := sdk.SplitID("")
	for i := range entries {
		if decodeEntry(&d, l, &entries[i], before, int(splitVersion), codec); d.err != nil {
			break
		}
		before = entries[i].id
	}
	if d.err == nil && len(d.rest) > 0 {
		d.fail("%d bytes after the last split", len(d.rest))
	}
	if d.err != nil {
		return nil, nil, fmt.Errorf("enumerator state: %w", d.err)
	}
	return l, identity, nil
}

// decodeEntry reads one split into e and the ledger.
func decodeEntry[S sdk.Split](d *stateReader, l *ledger[S], e *entry[S], before sdk.SplitID, splitVersion int, codec sdk.Codec[S]) {
	shared := d.oneOf("shared prefix", uint64(len(before)))
	rest := d.text("length of a split id")
	flags := d.oneOf("phase", uint64(finished)|removedFlag)
	if d.err != nil {
		return
	}
	d.id = append(append(d.id[:0], before[:shared]...), rest...)
	id := sdk.SplitID(d.id)
	p := phase(flags &^ removedFlag)
	switch {
	case checkSplitID(id) != nil:
		d.fail("split id of %d bytes", len(id))
		return
	case id <= before || sharedPrefix(before, id) != int(shared):
		d.fail("split ids are not in their order at %q", id)
		return
	case p == unknown || p > finished:
		d.fail("split %q is in phase %d", id, p)
		return
	}
	*e = entry[S]{id: id, owner: nobody, removed: flags&removedFlag != 0}
	l.entries[id] = e
	l.ascending = append(l.ascending, e)
	if p == assigned || p == finished {
		l.enter(e, p, nobody)
		return
	}
	split, err := codec.Decode(splitVersion, d.text("length of a split"))
	switch {
	case d.err != nil:
	case err != nil:
		d.err = fmt.Errorf("split %q: %w", id, err)
	case split.SplitID() != id:
		d.fail("split %q is stored under the id %q", split.SplitID(), id)
	default:
		e.split = split
		l.enter(e, waiting, nobody)
	}
}

// stateReader reads from untrusted bytes. After the first failure everything it answers is zero.
type stateReader struct {
	rest []byte
	err  error
	id   []byte // scratch
}

func (d *stateReader) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", sdk.ErrCorrupt, fmt.Sprintf(format, args...))
		d.rest = nil
	}
}

// oneOf reads a number up to most.
func (d *stateReader) oneOf(what string, most uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	switch {
	case d.err != nil:
		return 0
	case n <= 0:
		d.fail("%s is missing or cut off", what)
		return 0
	case n > 1 && d.rest[n-1] == 0:
		d.fail("%s is not in its shortest form", what)
		return 0
	case v > most:
		d.fail("%s is %d, at most %d is possible", what, v, most)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads how many of something follow. Each takes some bytes at least, which bounds what a flipped bit makes us allocate.
func (d *stateReader) count(what string, each int) uint64 {
	n := d.oneOf(what, 1<<62)
	if n > uint64(len(d.rest)/each) {
		d.fail("%s is %d, in %d bytes", what, n, len(d.rest))
		return 0
	}
	return n
}

// text reads a length and so many bytes.
func (d *stateReader) text(what string) []byte {
	n := d.count(what, 1)
	out := d.rest[:n:n]
	d.rest = d.rest[n:]
	return out
}

func appendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func sharedPrefix(a, b sdk.SplitID) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
