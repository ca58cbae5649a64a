package kinesistest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// checkRing fails a test unless the open shards cover each hash key once.
func checkRing(t *testing.T, st *stream) {
	t.Helper()
	open := st.openShards()
	if len(open) == 0 || open[0].keys.start != lowest || open[len(open)-1].keys.end != highest {
		t.Fatalf("%d open shards do not cover the ring", len(open))
	}
	for i := range open[1:] {
		if !open[i].keys.adjoins(open[i+1].keys) {
			t.Fatalf("%s ends at %s, and %s begins at %s", open[i].id, open[i].keys.end, open[i+1].id, open[i+1].keys.start)
		}
	}
}

// checkLineage fails a test unless children lie within their parents, with numbers above theirs.
func checkLineage(t *testing.T, st *stream) {
	t.Helper()
	for _, sh := range st.shards {
		if sh.open() == (len(sh.children) > 0) {
			t.Errorf("%s: open %t with %d children", sh.id, sh.open(), len(sh.children))
		}
		for _, p := range sh.parents {
			if sh.seconds <= p.seconds || !slices.Contains(p.children, sh) || (!sh.keys.within(p.keys) && !p.keys.within(sh.keys)) {
				t.Errorf("%s is no child of %s", sh.id, p.id)
			}
		}
	}
}

func TestReshardingAtRandomKeepsTheRingAndTheLineage(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := fuzzed(t)
	st := s.mu.streams["orders"]
	for range 300 {
		s.Advance(time.Duration(rng.IntN(3)) * time.Second)
		open := st.openShards()
		switch at := rng.IntN(len(open)); rng.IntN(4) {
		case 0:
			if _, _, err := s.Split("orders", open[at].id); err != nil {
				t.Fatal(err)
			}
		case 1:
			if at > 0 {
				if _, err := s.Merge("orders", open[at].id, open[at-1].id); err != nil {
					t.Fatal(err)
				}
			}
		case 2:
			n := 1 + rng.IntN(12)
			if err := s.Reshard("orders", n); err != nil {
				t.Fatal(err)
			}
			if got := len(st.openShards()); got != n {
				t.Fatalf("%d open shards, want %d", got, n)
			}
		case 3:
			var k hashKey
			for i := range k {
				k[i] = byte(rng.Uint32())
			}
			placed, err := s.Put("orders", Record{ExplicitHashKey: k.String(), Data: []byte("v")})
			if err != nil {
				t.Fatal(err)
			}
			if sh := st.byID[placed[0].Shard]; !sh.open() || !sh.keys.contains(k) {
				t.Fatalf("%s went to %s", k, sh.id)
			}
		}
		checkRing(t, st)
	}
	checkLineage(t, st)
}

func TestEvenRangesDifferByAtMostWhatIsLeftOver(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 7, 1000} {
		ranges := evenRanges(n)
		if ranges[0].start != lowest || ranges[n-1].end != highest {
			t.Errorf("%d ranges do not cover the ring", n)
		}
		for i := range ranges[1:] {
			if !ranges[i].adjoins(ranges[i+1]) {
				t.Errorf("%d ranges: number %d does not adjoin the next", n, i)
			}
		}
	}
}

func TestASequenceNumberIsAboveThoseOfEarlierWritesAndShards(t *testing.T) {
	t.Parallel()
	ascending := []sequence{
		{created: 1767323045, index: 0, written: 1767323045, shard: 9},
		{created: 1767323045, index: 16, written: 1767323045, shard: 9},
		{created: 1767323045, index: 17, written: 1767323046, shard: 9},
		{created: 1767323045, index: 32, written: 1767323046, shard: 9},
		{created: 1767323045, index: endIndex, written: 1767323050, shard: 9},
		{created: 1767323046, index: 0, written: 1767323046, shard: 2},
		{created: maxSeconds, index: endIndex, written: maxSeconds, shard: 1<<32 - 1},
	}
	for i, q := range ascending {
		text := q.String()
		if len(text) != 56 {
			t.Errorf("%s has %d digits", text, len(text))
		}
		if back, ok := parseSequence(text); !ok || back != q {
			t.Errorf("%+v is read as %+v", q, back)
		}
		if i > 0 && text <= ascending[i-1].String() {
			t.Errorf("%s follows %s", text, ascending[i-1])
		}
	}
}
