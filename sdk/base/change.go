package base

import "github.com/penstock-dev/penstock/sdk"

// changes collects what the loop wants a fetcher to know until the fetcher has time for it. Per split only the outcome
// counts, so it is bounded by the number of splits, however often they are paused and resumed while a fetch runs.
type changes[S sdk.Split] struct {
	bySplit map[sdk.SplitID]*splitChange[S]
	order   []sdk.SplitID // of first mention, so that the fetcher sees a stable order
}

type splitChange[S sdk.Split] struct {
	remove bool // before add
	add    bool
	split  S
	pause  pausing
}

// pausing is the last word about a split; the zero value means that nothing was said.
type pausing uint8

const (
	unsaid pausing = iota
	pause
	resume
)

func (c *changes[S]) empty() bool { return len(c.order) == 0 }

func (c *changes[S]) add(split S) {
	ch := c.of(split.SplitID())
	ch.add, ch.split, ch.pause = true, split, unsaid
}

func (c *changes[S]) remove(id sdk.SplitID) {
	*c.of(id) = splitChange[S]{remove: true}
}

func (c *changes[S]) setPause(id sdk.SplitID, p pausing) { c.of(id).pause = p }

func (c *changes[S]) of(id sdk.SplitID) *splitChange[S] {
	ch := c.bySplit[id]
	if ch == nil {
		if c.bySplit == nil {
			c.bySplit = make(map[sdk.SplitID]*splitChange[S])
		}
		ch = new(splitChange[S])
		c.bySplit[id] = ch
		c.order = append(c.order, id)
	}
	return ch
}

// roster is what a fetcher has told its split reader so far. It belongs to the fetcher's goroutine, the only place where
// adding, removing and finishing of splits meet, so there is no moment at which one can overlook the other.
type roster struct {
	paused map[sdk.SplitID]bool // every assigned split, and whether it is paused
	late   map[sdk.SplitID]int  // fetches that brought elements of a paused split since it was told
	active int                  // those not paused
}

func (r *roster) empty() bool { return len(r.paused) == 0 }

func (r *roster) has(id sdk.SplitID) bool {
	_, ok := r.paused[id]
	return ok
}

func (r *roster) add(id sdk.SplitID) {
	if r.has(id) {
		return
	}
	if r.paused == nil {
		r.paused = make(map[sdk.SplitID]bool)
	}
	r.paused[id] = false
	r.active++
}

func (r *roster) drop(id sdk.SplitID) bool {
	paused, ok := r.paused[id]
	if !ok {
		return false
	}
	delete(r.paused, id)
	delete(r.late, id)
	if !paused {
		r.active--
	}
	return true
}

// setPaused reports whether that was news.
func (r *roster) setPaused(id sdk.SplitID, paused bool) bool {
	was, ok := r.paused[id]
	if !ok || was == paused {
		return false
	}
	r.paused[id] = paused
	delete(r.late, id)
	if paused {
		r.active--
	} else {
		r.active++
	}
	return true
}

// arrive counts a fetch that brought elements of a split, and answers how many did since the split was paused.
func (r *roster) arrive(id sdk.SplitID) (late int) {
	if !r.paused[id] {
		return 0
	}
	if r.late == nil {
		r.late = make(map[sdk.SplitID]int)
	}
	r.late[id]++
	return r.late[id]
}

// apply turns c into what the split reader has to be told, leaving out what it knows: a split that it finished itself
// meanwhile, a pause that was lifted again. What is removed comes in a change of its own, before what is added, so that
// nobody has to think about a split that is in both.
func apply[S sdk.Split](r *roster, c *changes[S]) []Change[S] {
	var removed, rest Change[S]
	for _, id := range c.order {
		ch := c.bySplit[id]
		if ch.remove && r.drop(id) {
			removed.Removed = append(removed.Removed, id)
		}
		if ch.add {
			r.add(id)
			rest.Added = append(rest.Added, ch.split)
		}
		switch ch.pause {
		case unsaid:
		case pause:
			if r.setPaused(id, true) {
				rest.Paused = append(rest.Paused, id)
			}
		case resume:
			if r.setPaused(id, false) {
				rest.Resumed = append(rest.Resumed, id)
			}
		}
	}
	var out []Change[S]
	if len(removed.Removed) > 0 {
		out = append(out, removed)
	}
	if len(rest.Added)+len(rest.Paused)+len(rest.Resumed) > 0 {
		out = append(out, rest)
	}
	return out
}
