package mailbox

import (
	"slices"

	"github.com/penstock-dev/penstock/runtime/protocol"
)

// Window remembers which sequences of one sender epoch were seen: all up to a highest one but for gaps. A later
// sequence may be seen before an earlier one, because a refused command is offered again behind its successors.
type Window struct {
	high protocol.Sequence
	gaps []protocol.Sequence // ascending, all below high
}

// Add marks seq as seen. fresh is false when it was seen before; ok is false when remembering it would need more than
// [protocol.MaxGaps] gaps: nothing changed then, and the sender must first deliver what is missing.
func (w *Window) Add(seq protocol.Sequence) (fresh, ok bool) {
	if seq <= w.high {
		i, missing := slices.BinarySearch(w.gaps, seq)
		if missing {
			w.gaps = slices.Delete(w.gaps, i, i+1)
		}
		return missing, true
	}
	if skipped := uint64(seq - w.high - 1); skipped+uint64(len(w.gaps)) > protocol.MaxGaps {
		return true, false
	}
	for s := w.high + 1; s < seq; s++ {
		w.gaps = append(w.gaps, s)
	}
	w.high = seq
	return true, true
}

// Seen reports whether seq was added.
func (w *Window) Seen(seq protocol.Sequence) bool {
	if seq > w.high {
		return false
	}
	_, missing := slices.BinarySearch(w.gaps, seq)
	return !missing
}

// Watermark returns the window in its durable form. The caller owns the gaps.
func (w *Window) Watermark(epoch protocol.Epoch) protocol.Watermark {
	return protocol.Watermark{Epoch: epoch, Applied: w.high, Gaps: slices.Clone(w.gaps)}
}

// Covers reports whether a durable watermark contains seq.
func Covers(w protocol.Watermark, seq protocol.Sequence) bool {
	if seq > w.Applied {
		return false
	}
	_, missing := slices.BinarySearch(w.Gaps, seq)
	return !missing
}
