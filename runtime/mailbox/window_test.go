package mailbox

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/runtime/protocol"
)

// naive remembers sequences in a plain set.
type naive struct {
	seen map[protocol.Sequence]bool
	high protocol.Sequence
}

func (n *naive) add(seq protocol.Sequence) (fresh, ok bool) {
	if n.seen[seq] {
		return false, true
	}
	if missing := n.missing(max(n.high, seq)); seq > n.high && missing-1 > protocol.MaxGaps {
		return true, false // missing counts seq itself
	}
	n.seen[seq] = true
	n.high = max(n.high, seq)
	return true, true
}

func (n *naive) missing(high protocol.Sequence) int { return int(high) - len(n.seen) }

func (n *naive) gaps() []protocol.Sequence {
	var gaps []protocol.Sequence
	for s := protocol.Sequence(1); s <= n.high; s++ {
		if !n.seen[s] {
			gaps = append(gaps, s)
		}
	}
	return gaps
}

// check compares the window with the set, at every sequence up to a few beyond the highest.
func (n *naive) check(t interface{ Fatalf(string, ...any) }, w *Window) {
	mark := w.Watermark(3)
	if mark.Epoch != 3 || mark.Applied != n.high || !slices.Equal(mark.Gaps, n.gaps()) {
		t.Fatalf("watermark is %d with gaps %v, want %d with %v", mark.Applied, mark.Gaps, n.high, n.gaps())
	}
	if len(mark.Gaps) > protocol.MaxGaps {
		t.Fatalf("%d gaps", len(mark.Gaps))
	}
	for s := protocol.Sequence(1); s <= n.high+3; s++ {
		if w.Seen(s) != n.seen[s] || Covers(mark, s) != n.seen[s] {
			t.Fatalf("sequence %d: Seen %t, Covers %t, want %t", s, w.Seen(s), Covers(mark, s), n.seen[s])
		}
	}
}

func TestWindowAgreesWithASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		n := &naive{seen: map[protocol.Sequence]bool{}}
		// Mostly near the highest, where retries and duplicates are; sometimes around the bound.
		near := rapid.IntRange(-8, 8)
		far := rapid.SampledFrom([]int{protocol.MaxGaps - 1, protocol.MaxGaps, protocol.MaxGaps + 1, protocol.MaxGaps + 2, 5 * protocol.MaxGaps, -600})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			step := rapid.OneOf(near, near, near, near, far).Draw(t, "step")
			seq := protocol.Sequence(max(int(n.high)+step, 1))
			fresh, ok := w.Add(seq)
			wantFresh, wantOK := n.add(seq)
			if fresh != wantFresh || ok != wantOK {
				t.Fatalf("Add(%d) with highest %d: %t, %t; want %t, %t", seq, n.high, fresh, ok, wantFresh, wantOK)
			}
		}
		n.check(t, &w)
	})
}

// The bound is exact: MaxGaps missing sequences are remembered, one more is not, and a refusal changes nothing.
func TestWindowBound(t *testing.T) {
	t.Parallel()
	var w Window
	if _, ok := w.Add(protocol.MaxGaps + 2); ok {
		t.Error("one gap too many was remembered")
	}
	if m := w.Watermark(1); m.Applied != 0 || len(m.Gaps) != 0 {
		t.Errorf("the refusal left %+v", m)
	}
	if _, ok := w.Add(protocol.MaxGaps + 1); !ok {
		t.Error("as many gaps as allowed were refused")
	}
	if _, ok := w.Add(protocol.MaxGaps + 2); !ok {
		t.Error("the next sequence needs no gap")
	}
	if _, ok := w.Add(1 << 62); ok {
		t.Error("a sequence far ahead was remembered")
	}
}

func TestWatermarkIsACopy(t *testing.T) {
	t.Parallel()
	var w Window
	w.Add(5)
	mark := w.Watermark(1)
	w.Add(2)
	if !slices.Equal(mark.Gaps, []protocol.Sequence{1, 2, 3, 4}) {
		t.Errorf("the window changed a watermark that was given away: %v", mark.Gaps)
	}
}

// Sequence 0 stands for what was adopted from a registration: every watermark of the epoch covers it.
func TestEveryWatermarkCoversAdoptedAssignments(t *testing.T) {
	t.Parallel()
	var w Window
	if !Covers(w.Watermark(1), 0) {
		t.Error("an empty watermark does not cover sequence 0")
	}
	w.Add(3)
	if !Covers(w.Watermark(1), 0) {
		t.Error("a watermark with gaps does not cover sequence 0")
	}
}

// FuzzWindow reads steps from bytes: a relative sequence each.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{1, 1, 1})
	f.Add([]byte{5, 0xfe, 0xfd, 3, 0xff})
	f.Add([]byte{127, 127, 127, 127, 127, 127, 127, 127, 127, 0x80})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 64 {
			return
		}
		var w Window
		n := &naive{seen: map[protocol.Sequence]bool{}}
		for _, b := range steps {
			seq := protocol.Sequence(max(int(n.high)+int(int8(b)), 1))
			fresh, ok := w.Add(seq)
			if f, o := n.add(seq); fresh != f || ok != o {
				t.Fatalf("Add(%d): %t, %t; want %t, %t", seq, fresh, ok, f, o)
			}
		}
		n.check(t, &w)
	})
}
