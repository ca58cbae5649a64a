package fake

import "github.com/penstock-dev/penstock/sdk"

// view presents a chunk. It is made once for each chunk, so a turn allocates nothing.
type view struct {
	id       sdk.SplitID
	split    int
	elements []element
}

// viewOf answers a view that ends where elements end, and where in it they begin. Elements are what is left of a chunk,
// so the view of the turn before usually does; the rate limit may have cut them short.
func (st *state) viewOf(elements []element) (*view, int) {
	if v := st.view; v != nil {
		from := elements[0].index - v.elements[0].index
		if from >= 0 && from+int64(len(elements)) == int64(len(v.elements)) {
			return v, int(from)
		}
	}
	st.view = &view{id: st.SplitID(), split: st.Number, elements: elements}
	return st.view, 0
}

func (v *view) Len() int { return len(v.elements) }

func (v *view) Bytes(from, to int) int64 {
	var n int64
	for i := from; i < to; i++ {
		n += v.elements[i].size()
	}
	return n
}

func (v *view) Record(i int, into *sdk.Record) bool {
	into.Split = v.id
	v.elements[i].fill(into, v.split)
	return true
}
