package base

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-dev/penstock/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNewReaderNamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := NewReader(newLent(), Config[num, at, int64]{
		EmitChunk:        func([]num, *int64, sdk.Output) (int, error) { return 0, nil },
		Emit:             func(num, *int64, sdk.Output) error { return nil },
		MaxFetchers:      -1,
		RecordsPerSecond: math.NaN(),
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"Fetcher", "Emit and EmitChunk", "ToState and ToSplit", "MaxFetchers", "RecordsPerSecond"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("does not name %s: %v", name, err)
		}
	}
	if _, err := NewReader(newLent(), (&counting{}).config()); err != nil {
		t.Errorf("the shortest configuration: %v", err)
	}
}

func TestReadsBoundedSplitsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, end: map[string]int64{"a": 95, "b": 7}}
		l := newLoop(t, c.config())
		l.add(at{"a", 5}, at{"b", 0})
		l.noMore()
		if status := l.settle(); status != sdk.EndOfInput {
			t.Fatalf("status %s, want EndOfInput", status)
		}
		l.inOrder("a", 5, 95)
		l.inOrder("b", 0, 7)
		if want := []at{{"b", 7}, {"a", 95}}; !slices.Equal(l.out.finished, want) {
			t.Errorf("finished %v, want %v", l.out.finished, want)
		}
		if left, err := l.r.Snapshot(1); err != nil || len(left) != 0 {
			t.Errorf("snapshot holds %v (%v), want nothing", left, err)
		}
		if status := l.must(); status != sdk.EndOfInput {
			t.Errorf("polled again: %s, want EndOfInput again", status)
		}
		l.close()
		if c.closed != 1 {
			t.Errorf("split reader closed %d times, want once", c.closed)
		}
	})
}

// Each snapshot covers exactly what was emitted before it: a reader that goes on from any of them emits the rest.
func TestSnapshotAfterEveryRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := map[string]int64{"a": 90, "b": 40}
		read := func(from []at) (emitted int) {
			l := newLoop(t, (&counting{size: 7, end: end}).config())
			l.add(from...)
			l.noMore()
			if l.settle() != sdk.EndOfInput {
				t.Fatal("did not end")
			}
			want := 0
			for _, s := range from {
				l.inOrder(s.SplitID(), s.Next, end[s.Name])
				want += int(end[s.Name] - s.Next)
			}
			if len(l.out.records) != want {
				t.Errorf("%d records from %v, want %d", len(l.out.records), from, want)
			}
			l.close()
			return len(l.out.records)
		}
		l := newLoop(t, (&counting{size: 7, end: end}).config())
		l.turn = sdk.NewTurn(sdk.TurnLimits{Records: 1, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
		l.out.turn = l.turn
		l.add(at{"a", 0}, at{"b", 0})
		l.noMore()
		for status := sdk.NothingAvailable; status != sdk.EndOfInput; {
			synctest.Wait()
			status = l.must()
			splits, err := l.r.Snapshot(1)
			if err != nil {
				t.Fatal(err)
			}
			if rest := read(splits); len(l.out.records)+rest != 130 {
				t.Fatalf("%d records before and %d after a snapshot, want 130 in all", len(l.out.records), rest)
			}
		}
		l.close()
	})
}

// A filtered element moves the position, a fanned-out one moves it once.
func TestFilteredAndFannedOutElements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, end: map[string]int64{"a": 101}}
		cfg := c.config()
		cfg.Emit = func(e num, st *at, out sdk.Output) error {
			for range e.n % 3 { // 0, 1 or 2 records
				if !out.Emit(sdk.Record{Offset: e.n}) {
					return nil
				}
			}
			st.Next = e.n + 1
			return nil
		}
		l := newLoop(t, cfg)
		l.add(at{"a", 0})
		l.noMore()
		if l.settle() != sdk.EndOfInput {
			t.Fatal("did not end")
		}
		if n := len(l.out.records); n != 100 {
			t.Errorf("%d records, want 100", n)
		}
		if want := []at{{"a", 101}}; !slices.Equal(l.out.finished, want) {
			t.Errorf("finished %v, want %v", l.out.finished, want)
		}
		l.close()
	})
}

func TestBudgetsOfATurn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits sdk.TurnLimits
		size   int
		want   int
	}{
		{"records", sdk.TurnLimits{Records: 10, Bytes: 1 << 20, Duration: time.Hour}, 1, 10},
		{"bytes", sdk.TurnLimits{Records: 64, Bytes: 100, Duration: time.Hour}, 40, 3},
		{"oversize", sdk.TurnLimits{Records: 64, Bytes: 100, Duration: time.Hour}, 1000, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := (&counting{size: 100}).config()
				cfg.Emit = func(e num, st *at, out sdk.Output) error {
					out.Emit(sdk.Record{Value: make([]byte, tc.size), Offset: e.n})
					st.Next = e.n + 1
					return nil
				}
				l := newLoop(t, cfg)
				l.turn = sdk.NewTurn(tc.limits, time.Now, nil)
				l.out.turn = l.turn
				l.add(at{"a", 0})
				synctest.Wait()
				for i := 1; i <= 3; i++ {
					if status := l.must(); status != sdk.MoreAvailable || len(l.out.records) != i*tc.want {
						t.Errorf("turn %d: %s, %d records in all, want %d", i, status, len(l.out.records), i*tc.want)
					}
				}
				l.close()
			})
		})
	}
}

// A turn looks at the clock once in several questions. Out of time it must end, whichever part of Poll is told so, and have
// emitted something.
func TestATurnOutOfTimeEnds(t *testing.T) {
	for size := 1; size <= 20; size++ {
		synctest.Test(t, func(t *testing.T) {
			l := newLoop(t, (&counting{size: size}).config())
			looks := 0
			l.turn = sdk.NewTurn(sdk.TurnLimits{Records: 1 << 20, Bytes: 1 << 20, Duration: 0}, func() time.Time {
				if looks++; looks > 10_000 {
					t.Fatal("the turn does not end")
				}
				return time.Now()
			}, nil)
			l.out.turn = l.turn
			l.add(at{"a", 0}, at{"b", 0})
			for range 50 {
				synctest.Wait()
				before := len(l.out.records)
				l.must()
				if n := len(l.out.records) - before; n == 0 || n > 16 {
					t.Errorf("chunks of %d: %d records in a turn without time, want a few", size, n)
				}
			}
			l.close()
		})
	}
}

func TestAKnownSplitIsAddedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 5, end: map[string]int64{"a": 50}}
		l := newLoop(t, c.config())
		l.add(at{"a", 10}, at{"a", 0})
		l.add(at{"a", 20})
		l.noMore()
		l.settle()
		l.inOrder("a", 10, 50)
		l.close()
	})
}

func TestARefusedOutputIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 5}
		cfg := c.config()
		calls := 0
		cfg.Emit = func(e num, st *at, out sdk.Output) error { // an author who does not look at the answer
			calls++
			out.Emit(sdk.Record{Offset: e.n})
			out.Emit(sdk.Record{Offset: e.n})
			return nil
		}
		l := newLoop(t, cfg)
		l.add(at{"a", 0})
		synctest.Wait()
		l.out.refuse = true
		for range 5 {
			if status := l.must(); status != sdk.NothingAvailable {
				t.Errorf("status %s, want NothingAvailable", status)
			}
			synctest.Wait()
		}
		if l.out.asked != 1 {
			t.Errorf("the output was asked %d times, want once", l.out.asked)
		}
		if calls != 1 {
			t.Errorf("Emit was called %d times, want once", calls)
		}
		l.close()
	})
}

// A busy fetcher and a huge chunk starve nobody: turns go round fetchers and, within a fetch, round its splits.
func TestTurnsAreSharedFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := func(split string) Chunk[num] {
			c := Chunk[num]{Split: sdk.SplitID(split), Elements: make([]num, 10_000)}
			for i := range c.Elements {
				c.Elements[i] = num{split, int64(i)}
			}
			return c
		}
		fetchers := [][]Chunk[num]{{huge("0a"), huge("0b"), huge("0c")}, {huge("1a")}}
		next := 0
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) {
				next++
				return &oneShot{got: Fetched[num]{Chunks: fetchers[next-1]}}, nil
			},
			FetcherOf: func(s at) int { return int(s.Name[0] - '0') },
			Emit:      emitNum,
		})
		l.add(at{"0a", 0}, at{"0b", 0}, at{"0c", 0})
		synctest.Wait()
		l.add(at{"1a", 0})
		synctest.Wait()
		for range 12 {
			l.must()
		}
		for split, turns := range map[sdk.SplitID]int{"0a": 2, "0b": 2, "0c": 2, "1a": 6} {
			if n := len(l.offsets(split)); n != turns*64 {
				t.Errorf("split %s had %d records in 12 turns, want %d", split, n, turns*64)
			}
			l.inOrder(split, 0, int64(turns*64))
		}
		l.close()
	})
}

// Several chunks of one split in one fetch stay in order.
func TestChunksOfOneSplitStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got Fetched[num]
		for i := range int64(300) {
			split := string("ab"[i%2])
			got.Chunks = append(got.Chunks, Chunk[num]{Split: sdk.SplitID(split), Elements: []num{{split, i / 2}}})
		}
		got.Finished = []sdk.SplitID{"a", "b"}
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) { return &oneShot{got: got}, nil },
			Emit:    emitNum,
		})
		l.add(at{"a", 0}, at{"b", 0})
		l.noMore()
		if l.settle() != sdk.EndOfInput {
			t.Fatal("did not end")
		}
		l.inOrder("a", 0, 150)
		l.inOrder("b", 0, 150)
		l.close()
	})
}

// The number a removed and re-added split goes on with decides, not what was fetched in its earlier life.
func TestDataOfARemovedSplitIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 100, end: map[string]int64{"a": 1000}}
		released := 0
		cfg := c.config()
		cfg.Fetcher = func() (SplitReader[num, at], error) { return &releasing{counting: c, released: &released}, nil }
		l := newLoop(t, cfg)
		l.add(at{"a", 0})
		synctest.Wait() // the queue is full, one batch is held back
		l.must()        // 64 of the first 100
		if err := l.r.RemoveSplits([]sdk.SplitID{"a", "never known"}); err != nil {
			t.Fatal(err)
		}
		if splits, _ := l.r.Snapshot(1); len(splits) != 0 {
			t.Errorf("snapshot still holds %v", splits)
		}
		l.out.records = nil
		l.add(at{"a", 500})
		l.noMore()
		if l.settle() != sdk.EndOfInput {
			t.Fatal("did not end")
		}
		l.inOrder("a", 500, 1000)
		l.close()
		if released != c.fetchedBatches() {
			t.Errorf("%d batches released of %d", released, c.fetchedBatches())
		}
	})
}

// Random controls, wakeups and polls; whatever happens, each split emits every number once and in order, and a snapshot
// is where it stands.
func TestRandomControls(t *testing.T) {
	t.Parallel()
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %#x", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			end := make(map[string]int64)
			cfg := Config[num, at, at]{
				Fetcher:      func() (SplitReader[num, at], error) { return &counting{size: 1 + int(seed%40), end: end}, nil },
				FetcherOf:    func(s at) int { return int(s.Name[0]) % 3 },
				QueueFetches: 1 + int(seed%3), QueueBytes: 200, Emit: emitNum,
			}
			for i := range 9 {
				end[string(rune('a'+i))] = 2000
			}
			l := newLoop(t, cfg)
			next, held := make(map[sdk.SplitID]int64), make(map[sdk.SplitID]bool)
			check := func() {
				for _, rec := range l.out.records {
					if rec.Offset != next[rec.Split] || !held[rec.Split] {
						t.Fatalf("split %s emitted %d, want %d (held: %t)", rec.Split, rec.Offset, next[rec.Split], held[rec.Split])
					}
					next[rec.Split]++
				}
				l.out.records = l.out.records[:0]
				for _, f := range l.out.finished {
					held[f.SplitID()] = false
				}
				l.out.finished = nil
			}
			for range 3000 {
				id := sdk.SplitID(rune('a' + rng.IntN(9)))
				switch rng.IntN(12) {
				case 0:
					if next[id] < 2000 {
						l.add(at{string(id), next[id]})
						held[id] = true
					}
				case 1:
					if rng.IntN(4) == 0 {
						_ = l.r.RemoveSplits([]sdk.SplitID{id})
						held[id] = false
					}
				case 2:
					l.pause([]sdk.SplitID{id}, nil)
				case 3:
					l.pause(nil, []sdk.SplitID{id})
				case 4:
					l.r.Wakeup()
				case 5:
					splits, _ := l.r.Snapshot(1)
					for _, s := range splits {
						if s.Next != next[s.SplitID()] {
							t.Fatalf("snapshot has %v, emitted up to %d", s, next[s.SplitID()])
						}
					}
				default:
					l.must()
					check()
				}
			}
			for id := range end {
				l.pause(nil, []sdk.SplitID{sdk.SplitID(id)})
				if next[sdk.SplitID(id)] < 2000 {
					l.add(at{id, next[sdk.SplitID(id)]})
					held[sdk.SplitID(id)] = true
				}
			}
			l.noMore()
			if err := l.run(); err != nil {
				t.Fatal(err)
			}
			check()
			for id := range end {
				if next[sdk.SplitID(id)] != 2000 {
					t.Errorf("split %s ended at %d", id, next[sdk.SplitID(id)])
				}
			}
			l.close()
		})
	}
}
