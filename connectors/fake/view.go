package fake

import "github.com/penstock-dev/penstock/sdk"

// view presents a chunk. It is made once for each chunk, so a turn allocates nothing.
type view struct {
	id    sdk.SplitID
	split int
	cfg   *Config
	keys  [][]byte
	first int64
	n     int
	made  []payload // nil when records are shared: those are made on the side of the sink
}

// viewOf answers a view that ends where elements end, and where in it they begin. Elements are what is left of a chunk,
// so the view of the turn before usually does; the rate limit may have cut them short.
func (r *Reader) viewOf(st *state, elements []int64) (*view, int) {
	if v := st.view; v != nil {
		from := elements[0] - v.first
		if from >= 0 && from+int64(len(elements)) == int64(v.n) {
			return v, int(from)
		}
	}
	v := &view{
		id: st.SplitID(), split: st.Number, cfg: &r.source.cfg, keys: r.source.keys, first: elements[0], n: len(elements),
	}
	if !v.cfg.Shared {
		v.made = make([]payload, v.n)
		arena := make([]byte, 0, v.n*v.cfg.room())
		for i, index := range elements {
			v.made[i], arena = v.cfg.generate(arena, v.split, index)
		}
	}
	st.view = v
	return v, 0
}

func (v *view) Len() int { return v.n }

func (v *view) Bytes(from, to int) int64 {
	if v.cfg.Shared && len(v.keys) == 0 {
		return int64(to-from) * int64(v.cfg.RecordSize)
	}
	var n int64
	for i := from; i < to; i++ {
		p := v.payload(i)
		n += p.size()
	}
	return n
}

func (v *view) Record(i int, into *sdk.Record) bool {
	into.Split = v.id
	fill(into, v.split, v.first+int64(i), v.payload(i))
	return true
}

func (v *view) payload(i int) payload {
	if v.made != nil {
		return v.made[i]
	}
	return v.cfg.refer(v.keys, v.split, v.first+int64(i))
}
