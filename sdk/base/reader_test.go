package base

import (
	"context"
	"errors"
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

// FLINK-17268: a wakeup between the fetch and the hand-over lost the batch.
func TestWakeupLosesNoRecord(t *testing.T) {
	t.Parallel()
	const records = 30_000
	c := &counting{size: 7, end: map[string]int64{"a": records}}
	l := newLoop(t, c.config())
	n := 0
	l.out.before = func() {
		if n++; n%10 == 0 {
			l.r.Wakeup()
		}
	}
	l.add(at{"a", 0})
	l.noMore()
	if err := l.run(); err != nil {
		t.Fatal(err)
	}
	l.inOrder("a", 0, records)
	l.close()
}

// The same from another goroutine, at moments nobody chose, with several fetchers.
func TestWakeupsFromElsewhereLoseNoRecord(t *testing.T) {
	t.Parallel()
	const records = 20_000
	end := map[string]int64{"0": records, "1": records, "2": records}
	cfg := Config[num, at, at]{
		Fetcher:   func() (SplitReader[num, at], error) { return &counting{size: 11, end: end}, nil },
		FetcherOf: func(s at) int { return int(s.Name[0] - '0') },
		Emit:      emitNum,
	}
	l := newLoop(t, cfg)
	l.add(at{"0", 0}, at{"1", 0}, at{"2", 0})
	l.noMore()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				l.r.Wakeup()
			}
		}
	}()
	if err := l.run(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	<-stopped
	for split := range end {
		l.inOrder(sdk.SplitID(split), 0, records)
	}
	l.close()
}

// A wakeup ends a running turn before the next element; between turns it costs one early return.
func TestWakeupEndsARunningTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 50}
		l := newLoop(t, c.config())
		l.add(at{"a", 0})
		synctest.Wait()
		l.out.before = func() {
			if l.out.asked == 3 {
				l.r.Wakeup()
			}
		}
		if status := l.must(); status != sdk.MoreAvailable || len(l.out.records) != 3 {
			t.Errorf("%s after %d records, want MoreAvailable after 3", status, len(l.out.records))
		}
		for range 1000 {
			l.r.Wakeup()
		}
		l.must()
		l.must()
		if n := len(l.out.records); n != 3+64 {
			t.Errorf("%d records two turns after 1000 wakeups, want one empty turn and one of 64", n)
		}
		l.close()
	})
}

// FLINK-27762, FLINK-36630: a stored wakeup leaked into later calls of the client.
func TestStoredWakeupsDoNotSpoilLaterFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 5, gate: make(chan struct{})}
		l := newLoop(t, c.config())
		for range 100 {
			l.r.Wakeup() // before there is a fetcher
		}
		l.add(at{"a", 0})
		synctest.Wait()
		for range 100 {
			l.r.Wakeup() // most of them find the fetch already cancelled
		}
		synctest.Wait()
		before := c.fetches
		c.gate <- struct{}{}
		synctest.Wait()
		if c.fetches != before+1 {
			t.Errorf("%d fetches until the next one that blocks, want 1: a wakeup was left over", c.fetches-before)
		}
		l.settle()
		l.inOrder("a", 0, 5)
		l.close()
	})
}

// FLINK-37663: a producer that was woken stayed registered as a waiter and swallowed the signal meant for another.
func TestRoomReachesTheProducerThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := []*counting{{size: 1}, {size: 1}}
		next := 0
		cfg := c[0].config()
		cfg.QueueFetches = 1
		cfg.FetcherOf = func(s at) int { return int(s.Name[0] - '0') }
		cfg.Fetcher = func() (SplitReader[num, at], error) { next++; return c[next-1], nil }
		l := newLoop(t, cfg)
		l.add(at{"0", 0})
		synctest.Wait()
		l.add(at{"1", 0})
		synctest.Wait() // both hold a batch that the full queue refused
		l.r.feeds[0].interrupt(sdk.ErrWakeup)
		synctest.Wait()
		if _, ok := l.r.feeds[1].queue.take(); !ok {
			t.Fatal("nothing to take")
		}
		synctest.Wait()
		if l.r.feeds[1].queue.empty() {
			t.Error("the other producer did not get the room")
		}
		l.close()
	})
}

// FLINK-19253, FLINK-36146: a split added while the fetcher was just becoming idle was never read.
func TestSplitAddedWhileTheFetcherIsGoingIdleIsRead(t *testing.T) {
	t.Parallel()
	const splits = 2000
	end := make(map[string]int64, splits)
	for i := range splits {
		end[fmt.Sprint(i)] = 1
	}
	l := newLoop(t, (&counting{size: 1, end: end}).config())
	for i := range splits {
		l.add(at{fmt.Sprint(i), 0})
		for len(l.out.finished) <= i {
			if l.must() == sdk.NothingAvailable && len(l.out.finished) <= i {
				<-l.ctx.doorbell
			}
		}
	}
	if len(l.r.feeds) != 1 {
		t.Errorf("%d fetchers, want one", len(l.r.feeds))
	}
	l.close()
}

// FLINK-19717: an error of the split reader surfaced as the end of input.
func TestErrorBeatsEndOfInput(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) {
				return &oneShot{got: Fetched[num]{Chunks: []Chunk[num]{{Split: "a", Elements: []num{{"a", 0}}}}, Finished: []sdk.SplitID{"a"}}, err: broken}, nil
			},
			Emit: emitNum,
		})
		l.add(at{"a", 0})
		l.noMore()
		err := l.run()
		if !errors.Is(err, broken) {
			t.Errorf("run: %v, want the error of the fetch", err)
		}
		l.inOrder("a", 0, 1)
		if _, again := l.poll(); !errors.Is(again, broken) {
			t.Errorf("polled again: %v, want the error again", again)
		}
		l.close()
	})
}

// oneShot answers one fetch and then blocks.
type oneShot struct {
	got   Fetched[num]
	err   error
	done  bool
	close func() error
}

func (o *oneShot) Fetch(ctx context.Context) (Fetched[num], error) {
	if o.done {
		<-ctx.Done()
		return Fetched[num]{}, context.Cause(ctx)
	}
	o.done = true
	return o.got, o.err
}

func (o *oneShot) HandleSplits(Change[at]) error { return nil }

func (o *oneShot) Close() error {
	if o.close != nil {
		return o.close()
	}
	return nil
}

// What was fetched before a failure is emitted first, so a record that cannot be read does not hold back those before it.
func TestRecordsBeforeAFailureAreEmitted(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, fail: func(_ string, n int64) error {
			if n == 137 {
				return broken
			}
			return nil
		}}
		l := newLoop(t, c.config())
		l.add(at{"a", 0})
		if err := l.run(); !errors.Is(err, broken) {
			t.Errorf("run: %v", err)
		}
		l.inOrder("a", 0, 137)
		l.close()
	})
}

// Told that no more splits follow, a reader that waits must be polled again to say that it ended.
func TestNoMoreSplitsRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, (&counting{size: 1}).config())
		if status := l.settle(); status != sdk.NothingAvailable {
			t.Fatalf("status %s without splits, want NothingAvailable", status)
		}
		l.noMore()
		select {
		case <-l.ctx.doorbell:
		default:
			t.Fatal("the doorbell did not ring")
		}
		if status := l.must(); status != sdk.EndOfInput {
			t.Errorf("status %s, want EndOfInput without ever having had a split", status)
		}
		l.close()
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

// releasing adds a Release to each batch of a counting reader and checks that it comes once and before Close.
type releasing struct {
	*counting
	released *int
	open     int
}

func (r *releasing) Fetch(ctx context.Context) (Fetched[num], error) {
	got, err := r.counting.Fetch(ctx)
	if len(got.Chunks) == 0 {
		return got, err
	}
	r.mu.Lock()
	r.open++
	r.mu.Unlock()
	once := false
	got.Release = func() {
		if once {
			panic("released twice")
		}
		once = true
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open--
		*r.released++
	}
	return got, err
}

func (r *releasing) Close() error {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	if open != 0 {
		return fmt.Errorf("closed while %d batches are in use", open)
	}
	return r.counting.Close()
}

// fetchedBatches is how many fetches brought something.
func (c *counting) fetchedBatches() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.brought
}

// FLINK-35924: the split reader was closed while emitted batches still used its buffers.
func TestCloseReleasesBatchesBeforeTheSplitReaderCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 100}
		released := 0
		cfg := c.config()
		cfg.Fetcher = func() (SplitReader[num, at], error) { return &releasing{counting: c, released: &released}, nil }
		l := newLoop(t, cfg)
		l.add(at{"a", 0}, at{"b", 0})
		synctest.Wait()
		l.must()
		l.must()
		synctest.Wait()
		l.close()
		if released != c.fetchedBatches() || released < 4 {
			t.Errorf("%d of %d batches released; two are in use, two queued, one held by the fetcher", released, c.fetchedBatches())
		}
	})
}

// FLINK-40660: a pending wakeup refused the hand-over during shutdown, and the reader was never closed.
func TestCloseAfterAWakeup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10}
		l := newLoop(t, c.config())
		l.add(at{"a", 0})
		synctest.Wait()
		l.r.Wakeup()
		l.close()
		if c.closed != 1 {
			t.Errorf("split reader closed %d times, want once", c.closed)
		}
	})
}

// hudi 19315: a fetcher was replaced while the old one was closing, and closed state that both used.
func TestCloseAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := newLoop(t, (&counting{}).config())
		never.close()
		never.close()
		never.r.Wakeup()
		if err := never.r.AddSplits([]at{{"a", 0}}); !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("add after close: %v, want ErrClosed", err)
		}
		if _, err := never.poll(); !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("poll after close: %v, want ErrClosed", err)
		}
		starting := newLoop(t, (&counting{}).config())
		starting.add(at{"a", 0})
		starting.close()
		stuck := newLoop(t, (&counting{gate: make(chan struct{})}).config())
		stuck.add(at{"a", 0})
		synctest.Wait()
		started := time.Now()
		stuck.close()
		stuck.close()
		if took := time.Since(started); took != 0 {
			t.Errorf("close took %s although the fetch obeys its context", took)
		}
	})
}

// deaf ignores its context until it is freed.
type deaf struct {
	free     chan struct{}
	released *int
	closed   *int
}

func (d *deaf) Fetch(context.Context) (Fetched[num], error) {
	<-d.free
	return Fetched[num]{Chunks: []Chunk[num]{{Split: "a", Elements: []num{{"a", 0}}}}, Release: func() { *d.released++ }}, nil
}
func (d *deaf) HandleSplits(Change[at]) error { return nil }
func (d *deaf) Close() error                  { *d.closed++; return nil }

// FLINK-36585: closing during a stuck fetch chained on availability without end. Ours waits, once, and says what it gave
// up; the abandoned goroutine cleans up when it can.
func TestCloseGivesUpOnAFetchThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released, closed int
		d := &deaf{free: make(chan struct{}), released: &released, closed: &closed}
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) { return d, nil },
			Emit:    emitNum, CloseTimeout: 30 * time.Second,
		})
		l.add(at{"a", 0})
		synctest.Wait()
		rings, started := l.ctx.rings.Load(), time.Now()
		err := l.r.Close()
		if !errors.Is(err, sdk.ErrClosed) || time.Since(started) != 30*time.Second {
			t.Errorf("close: %v after %s, want ErrClosed after 30 s", err, time.Since(started))
		}
		if n := l.ctx.rings.Load() - rings; n > 1 {
			t.Errorf("rang %d times while closing", n)
		}
		if released != 0 || closed != 0 {
			t.Error("cleaned up under a running fetch")
		}
		close(d.free)
		synctest.Wait()
		if released != 1 || closed != 1 {
			t.Errorf("released %d, closed %d after the fetch returned, want 1 and 1", released, closed)
		}
	})
}

// An empty fetch that returns at once must not spin, a long poll that found nothing must not be punished, and neither
// fills the hand-over.
func TestEmptyFetchesAreThrottled(t *testing.T) {
	for _, tc := range []struct {
		name     string
		latency  time.Duration
		min, max int
	}{
		{"at once", 0, 90, 110},
		{"long poll", 200 * time.Millisecond, 49, 51},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &emptyReader{latency: tc.latency}
				l := newLoop(t, Config[num, at, at]{Fetcher: func() (SplitReader[num, at], error) { return e, nil }, Emit: emitNum})
				synctest.Wait() // until the fetcher has told that it has nothing, which it may do before or after the split is added
				rings := l.ctx.rings.Load()
				l.add(at{"a", 0})
				time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of the bubble
				synctest.Wait()
				if e.fetches < tc.min || e.fetches > tc.max {
					t.Errorf("%d fetches in 10 s, want %d to %d", e.fetches, tc.min, tc.max)
				}
				if !l.r.feeds[0].queue.empty() || l.ctx.rings.Load() != rings {
					t.Error("an empty fetch was handed over")
				}
				l.close()
			})
		})
	}
}

type emptyReader struct {
	latency time.Duration
	fetches int
}

func (e *emptyReader) Fetch(ctx context.Context) (Fetched[num], error) {
	e.fetches++
	if e.latency > 0 {
		select {
		case <-time.After(e.latency):
		case <-ctx.Done():
		}
	}
	return Fetched[num]{}, nil
}
func (e *emptyReader) HandleSplits(Change[at]) error { return nil }
func (e *emptyReader) Close() error                  { return nil }

// A fetcher whose splits are all paused or finished waits and fetches nothing.
func TestAPausedFetcherBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, end: map[string]int64{"b": 1}}
		l := newLoop(t, c.config())
		l.add(at{"a", 0}, at{"b", 0})
		synctest.Wait()
		l.pause([]sdk.SplitID{"a", "unknown"}, nil)
		for range 5 {
			l.settle()
		}
		fetches := c.fetches
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		l.settle()
		if c.fetches != fetches {
			t.Errorf("%d fetches while paused", c.fetches-fetches)
		}
		l.close()
	})
}

// A paused split emits nothing, not even what is fetched, holds up nobody, and goes on where it stopped.
func TestPausedSplitKeepsItsPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, end: map[string]int64{"a": 500, "b": 500}}
		l := newLoop(t, c.config())
		l.add(at{"a", 0}, at{"b", 0})
		l.noMore()
		synctest.Wait()
		for len(l.offsets("a")) == 0 {
			l.must()
			synctest.Wait()
		}
		before := int64(len(l.offsets("a")))
		l.pause([]sdk.SplitID{"a"}, nil)
		if status := l.settle(); status != sdk.NothingAvailable {
			t.Fatalf("status %s with a paused split, want NothingAvailable", status)
		}
		l.inOrder("a", 0, before)
		l.inOrder("b", 0, 500)
		if held := len(l.r.splits["a"].pieces); held > 4 {
			t.Errorf("%d batches held for the paused split, more than the hand-over had", held)
		}
		// Paused and resumed over and over it must not gather more and more.
		for range 50 {
			l.pause(nil, []sdk.SplitID{"a"})
			synctest.Wait()
			l.pause([]sdk.SplitID{"a"}, nil)
			l.settle()
		}
		if held := len(l.r.splits["a"].pieces); held > 4 {
			t.Errorf("%d batches held after pausing 50 times", held)
		}
		if splits, _ := l.r.Snapshot(1); len(splits) != 1 || splits[0].Next != before {
			t.Errorf("snapshot %v, want a at %d", splits, before)
		}
		l.pause(nil, []sdk.SplitID{"a"})
		if status := l.settle(); status != sdk.EndOfInput {
			t.Errorf("status %s after the resume, want EndOfInput", status)
		}
		l.inOrder("a", 0, 500)
		l.close()
	})
}

// A panic on a fetcher's goroutine would end the process; it becomes the reader's error.
func TestPanicsBecomeErrors(t *testing.T) {
	for _, where := range []string{"create", "handle splits", "fetch", "close"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config[num, at, at]{Emit: emitNum, Fetcher: func() (SplitReader[num, at], error) {
					if where == "create" {
						panic("boom")
					}
					return panicking{where}, nil
				}}
				l := newLoop(t, cfg)
				l.add(at{"a", 0})
				synctest.Wait()
				_, err := l.poll()
				if closeErr := l.r.Close(); where == "close" {
					err = closeErr
				} else if closeErr != nil {
					t.Error(closeErr)
				}
				if err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), where) {
					t.Errorf("error %v, want one that names boom and %s", err, where)
				}
			})
		})
	}
}

type panicking struct{ where string }

func (p panicking) Fetch(ctx context.Context) (Fetched[num], error) {
	if p.where == "fetch" {
		panic("boom")
	}
	<-ctx.Done()
	return Fetched[num]{}, context.Cause(ctx)
}

func (p panicking) HandleSplits(Change[at]) error {
	if p.where == "handle splits" {
		panic("boom")
	}
	return nil
}

func (p panicking) Close() error {
	if p.where == "close" {
		panic("boom")
	}
	return nil
}

// Dropped silently, data of a split that is not assigned would be lost.
func TestDataOfAnUnassignedSplitIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) {
				return &oneShot{got: Fetched[num]{Chunks: []Chunk[num]{{Split: "tpyo", Elements: []num{{"a", 0}}}}}}, nil
			},
			Emit: emitNum,
		})
		l.add(at{"a", 0})
		synctest.Wait()
		if _, err := l.poll(); err == nil || !strings.Contains(err.Error(), `"tpyo"`) {
			t.Errorf("poll: %v, want an error that names the split", err)
		}
		l.close()
	})
}

func TestFetcherOfOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	cfg := (&counting{}).config()
	cfg.MaxFetchers = 2
	cfg.FetcherOf = func(at) int { return 2 }
	l := newLoop(t, cfg)
	if err := l.r.AddSplits([]at{{"a", 0}}); err == nil || !strings.Contains(err.Error(), "0 to 1") {
		t.Errorf("add: %v", err)
	}
	if err := l.r.AddSplits([]at{{"", 0}}); err == nil {
		t.Error("a split without id was accepted")
	}
	l.close()
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

// slowRemoval lets the test decide when, and how, a removal is applied.
type slowRemoval struct {
	oneShot
	answer chan error
}

func (s *slowRemoval) HandleSplits(ch Change[at]) error {
	if len(ch.Removed) > 0 {
		return <-s.answer
	}
	return nil
}

// With its last split removed a reader has no more to read, but a fetcher that still works on the removal may yet fail.
func TestEndOfInputWaitsForBusyFetchers(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		s := &slowRemoval{oneShot: oneShot{done: true}, answer: make(chan error)}
		l := newLoop(t, Config[num, at, at]{Fetcher: func() (SplitReader[num, at], error) { return s, nil }, Emit: emitNum})
		l.add(at{"a", 0}, at{"b", 0})
		l.noMore()
		synctest.Wait() // else the removal would only cancel the addition
		for i, id := range []sdk.SplitID{"a", "b"} {
			if err := l.r.RemoveSplits([]sdk.SplitID{id}); err != nil {
				t.Fatal(err)
			}
			if status := l.settle(); status != sdk.NothingAvailable {
				t.Fatalf("%s while the fetcher still works, want NothingAvailable", status)
			}
			s.answer <- []error{nil, broken}[i]
		}
		if err := l.run(); !errors.Is(err, broken) {
			t.Errorf("run: %v, want the error of the removal", err)
		}
		l.close()
	})
}
