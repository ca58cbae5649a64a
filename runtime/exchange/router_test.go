package exchange

import (
	"fmt"
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

func TestParseKind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Kind{"": Forward, "forward": Forward, "rebalance": Rebalance, "keyed": Keyed} {
		if got, err := ParseKind(text); err != nil || got != want {
			t.Errorf("ParseKind(%q) is %q, %v", text, got, err)
		}
	}
	if _, err := ParseKind("broadcast"); err == nil {
		t.Error("an unknown kind was read")
	}
}

func routed(kind Kind, channels, credit int) (*Router, []*Channel) {
	list := make([]*Channel, channels)
	for i := range list {
		list[i] = NewChannel(credit, func() {}, func() {})
	}
	return NewRouter(kind, list), list
}

// drained takes everything from a channel: offsets of records, and minus the number of barriers.
func drained(c *Channel) []int64 {
	var all []int64
	for {
		it, ok := c.Receive()
		switch {
		case !ok:
			return all
		case it.Batch == nil:
			all = append(all, -int64(it.Barrier.Checkpoint))
		default:
			all = append(all, offsets(it.Batch)...)
			c.Put(it.Batch)
		}
	}
}

func TestForwardKeepsOrder(t *testing.T) {
	t.Parallel()
	r, c := routed(Forward, 1, 3)
	for n := int64(1); n <= 3; n++ {
		if !r.Credit() || !r.Send(batchOf(n)) {
			t.Fatal("no room")
		}
	}
	if r.Credit() {
		t.Error("credit beyond the bound")
	}
	r.Barrier(barrier(9))
	if got := drained(c[0]); !slices.Equal(got, []int64{1, 2, 3, -9}) {
		t.Errorf("received %v", got)
	}
}

// Rebalance goes round, and passes by a task that has no credit: a slow sink task does not hold up the others.
func TestRebalancePassesBusyTasksBy(t *testing.T) {
	t.Parallel()
	r, c := routed(Rebalance, 3, 2)
	for n := int64(1); n <= 6; n++ {
		if !r.Credit() {
			t.Fatalf("no credit for batch %d", n)
		}
		r.Send(batchOf(n))
	}
	if r.Credit() {
		t.Error("credit beyond the bound of every channel")
	}
	if got := drained(c[1]); !slices.Equal(got, []int64{2, 5}) {
		t.Errorf("the second task received %v", got)
	}
	for n := int64(7); n <= 8; n++ {
		if !r.Credit() {
			t.Fatalf("no credit for batch %d although one task is free", n)
		}
		r.Send(batchOf(n))
	}
	r.Barrier(barrier(1))
	for i, want := range [][]int64{{1, 4, -1}, {7, 8, -1}, {3, 6, -1}} {
		if got := drained(c[i]); !slices.Equal(got, want) {
			t.Errorf("task %d received %v, want %v", i, got, want)
		}
	}
}

// Keyed: credit means credit in every channel, a batch is cut by key, order per key stays, and views are copied out.
func TestKeyedCutsByKey(t *testing.T) {
	t.Parallel()
	r, c := routed(Keyed, 3, 2)
	for range 2 {
		if !r.Credit() {
			t.Fatal("no credit")
		}
		b := r.Get()
		for n := range int64(60) {
			b.Append(&sdk.Record{Key: fmt.Appendf(nil, "key-%d", n%7), Offset: n})
		}
		b.AppendView(fixedView(4), 0, 4)
		if !r.Send(b) {
			t.Fatal("refused")
		}
	}
	if r.Credit() {
		t.Error("credit although a channel is full")
	}
	count := 0
	for i, ch := range c {
		last := map[string]int64{}
		for {
			it, ok := ch.Receive()
			if !ok {
				break
			}
			clear(last)
			for rec := range it.Batch.All() {
				count++
				if Route(rec, 3) != i {
					t.Errorf("key %q arrived at task %d", rec.Key, i)
				}
				if before, seen := last[string(rec.Key)]; seen && rec.Offset <= before {
					t.Errorf("key %q: %d after %d", rec.Key, rec.Offset, before)
				}
				last[string(rec.Key)] = rec.Offset
			}
		}
	}
	if count != 2*64 {
		t.Errorf("%d records arrived, want %d", count, 2*64)
	}
	for _, p := range r.parts {
		if p != nil {
			t.Error("the router keeps an open batch")
		}
	}
}

func TestKeyedNeedsCreditEverywhere(t *testing.T) {
	t.Parallel()
	r, c := routed(Keyed, 2, 1)
	busy := Route(&sdk.Record{Key: []byte("a")}, 2)
	b := r.Get()
	b.Append(&sdk.Record{Key: []byte("a")})
	r.Send(b)
	if r.Credit() {
		t.Error("one channel is full, and a turn's output may all go there")
	}
	drained(c[busy])
	if !r.Credit() {
		t.Error("no credit although everything was received")
	}
}

// Routes are part of the promise: the same key goes to the same task in every version. An empty key is a key; no key at all
// goes by split.
func TestRouteGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, split string
		none       bool
		want       [3]int // of 3, 16 and 512 tasks
	}{
		{key: "", want: goldenRoutes[0]},
		{key: "a", want: goldenRoutes[1]},
		{key: "user-42", want: goldenRoutes[2]},
		{key: "\x00\xff", want: goldenRoutes[3]},
		{none: true, split: "orders-0", want: goldenRoutes[4]},
		{none: true, split: "orders-1", want: goldenRoutes[5]},
		{key: "a", split: "orders-0", want: goldenRoutes[1]},
	} {
		rec := &sdk.Record{Key: []byte(c.key), Split: sdk.SplitID(c.split)}
		if c.none {
			rec.Key = nil
		}
		if got := [3]int{Route(rec, 3), Route(rec, 16), Route(rec, 512)}; got != c.want {
			t.Errorf("key %q split %q routes to %v, want %v", c.key, c.split, got, c.want)
		}
	}
}

func TestRouteSpreads(t *testing.T) {
	t.Parallel()
	counts := make([]int, 8)
	for n := range 8000 {
		counts[Route(&sdk.Record{Key: fmt.Appendf(nil, "key-%d", n)}, 8)]++
	}
	for i, n := range counts {
		if n < 700 || n > 1300 {
			t.Errorf("task %d gets %d of 8000 keys: %v", i, n, counts)
		}
	}
}

// A fenced attempt's router drops everything and says so.
func TestRouterCloseFences(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{Forward, Rebalance, Keyed} {
		n := 2
		if kind == Forward {
			n = 1
		}
		r, c := routed(kind, n, 1)
		r.Close()
		b := r.Get()
		b.Append(&sdk.Record{Key: []byte("k")})
		if !r.Credit() || r.Send(b) || r.Barrier(barrier(1)) {
			t.Errorf("%s: a closed router took something", kind)
		}
		r.Flush()
		for i := range c {
			if got := drained(c[i]); len(got) != 0 {
				t.Errorf("%s: channel %d holds %v", kind, i, got)
			}
		}
	}
}

// goldenRoutes were computed with another implementation of FNV-1a.
var goldenRoutes = [6][3]int{{2, 5, 293}, {1, 12, 140}, {0, 11, 203}, {2, 0, 352}, {0, 9, 185}, {2, 6, 262}}
