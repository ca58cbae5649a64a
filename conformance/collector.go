package conformance

import (
	"hash/fnv"

	"github.com/penstock-dev/penstock/sdk"
)

// maxView is how many elements of a view are accepted at once. An engine accepts as many as the budgets allow; fewer is always legal.
const maxView = 16

// taken is a record that a reader emitted.
type taken struct {
	rec  sdk.Record // its slices are still the reader's
	text string     // what it held when it was emitted
	sum  uint64     // of all its slices then
	view sdk.View   // it came from, or nil
	at   int        // in the view
}

// collector is the engine's side of a turn.
type collector[S sdk.Split] struct {
	textOf func(*sdk.Record) (string, bool)
	worker *worker
	turn   *sdk.Turn

	inTurn   bool
	records  []taken
	views    bool // some came as views
	texts    []string
	finished []S
	sizes    int64 // of what this turn emitted

	before   func() // each Emit and EmitView, on the reader's goroutine
	refuse   int    // this many records from now, then all are refused; negative is never
	refusals int    // calls that were refused

	misuse misuse
}

func (c *collector[S]) Emit(rec sdk.Record) bool {
	if !c.enter("Emit") {
		return false
	}
	if c.refused() {
		return false
	}
	size := rec.Size()
	c.keep(taken{rec: rec})
	c.took(1, size)
	return true
}

func (c *collector[S]) EmitView(v sdk.View, from int) (int, bool) {
	if !c.enter("EmitView") {
		return 0, false
	}
	if c.refused() {
		return 0, false
	}
	c.views = true
	n := 0
	for i := from; i < v.Len() && n < maxView && c.turn.Records() > 0 && c.turn.Bytes() > 0; i++ {
		if c.refuse == 0 {
			break
		}
		var rec sdk.Record
		if v.Record(i, &rec) {
			c.keep(taken{rec: rec, view: v, at: i})
		}
		c.took(1, v.Bytes(i, i+1))
		n++
	}
	return n, true
}

func (c *collector[S]) FinishSplit(final sdk.Split) {
	if !c.enter("FinishSplit") {
		return
	}
	s, ok := final.(S)
	if !ok {
		c.misuse.note("FinishSplit was given a value of another type than the source's splits")
		return
	}
	c.finished = append(c.finished, s)
}

// enter checks what holds for all outputs: only during a turn, only on the reader's goroutine.
func (c *collector[S]) enter(what string) bool {
	if !c.worker.here() {
		c.misuse.note("%s was called on another goroutine than the one that called Poll", what)
		return false
	}
	if !c.inTurn {
		c.misuse.note("%s was called outside of Poll", what)
		return false
	}
	if c.before != nil {
		c.before()
	}
	return true
}

func (c *collector[S]) refused() bool {
	if c.refuse != 0 {
		return false
	}
	c.refusals++
	return true
}

func (c *collector[S]) took(n int, size int64) {
	c.turn.Consume(n, size)
	c.sizes += size
	if c.refuse > 0 {
		c.refuse--
	}
}

func (c *collector[S]) keep(t taken) {
	text, ok := c.textOf(&t.rec)
	if !ok {
		return
	}
	t.text, t.sum = text, sum(&t.rec)
	c.records = append(c.records, t)
	c.texts = append(c.texts, text)
}

// sum is a fingerprint of everything in a record that is memory of the reader.
func sum(rec *sdk.Record) uint64 {
	h := fnv.New64a()
	for _, b := range [][]byte{rec.Key, rec.Value} {
		_, _ = h.Write(b)
		_, _ = h.Write([]byte{0})
	}
	for _, header := range rec.Headers {
		_, _ = h.Write([]byte(header.Key))
		_, _ = h.Write(header.Value)
	}
	return h.Sum64()
}

// changed counts the records that are not any more what they were when they were emitted.
func (c *collector[S]) changed() (n int, example string) {
	for i := range c.records {
		t := &c.records[i]
		rec := t.rec
		if t.view != nil {
			rec = sdk.Record{}
			t.view.Record(t.at, &rec)
		}
		if sum(&rec) != t.sum {
			if n++; n == 1 {
				example = t.text
			}
		}
	}
	return n, example
}
