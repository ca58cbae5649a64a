package base

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

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

func (e *emptyReader) Close() error { return nil }

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

// obstinate fetches one element of the split a each time that it is let, whatever it was told.
type obstinate struct {
	next     int64
	let      chan struct{}
	finished sdk.SplitID // instead of the element
}

func (o *obstinate) Fetch(ctx context.Context) (Fetched[num], error) {
	select {
	case <-o.let:
	case <-ctx.Done():
		return Fetched[num]{}, context.Cause(ctx)
	}
	if o.finished != "" {
		return Fetched[num]{Finished: []sdk.SplitID{o.finished}}, nil
	}
	o.next++
	return Fetched[num]{Chunks: []Chunk[num]{{Split: "a", Elements: []num{{"a", o.next - 1}}}}}, nil
}

func (o *obstinate) HandleSplits(Change[at]) error { return nil }
func (o *obstinate) Close() error                  { return nil }

// What a client had of a split when it was paused is kept, in order; a fetcher that goes on to fetch it would fill the memory.
func TestAFetcherThatIgnoresAPauseIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &obstinate{let: make(chan struct{})}
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) { return o, nil },
			Emit:    emitNum, QueueFetches: 3,
		})
		l.add(at{"a", 0}, at{"b", 0}) // b is why it is asked at all
		pause := func(pause, resume []sdk.SplitID) {
			l.pause(pause, resume)
			synctest.Wait()
		}
		fetch := func(n int) {
			for range n {
				o.let <- struct{}{}
				synctest.Wait()
				l.must()
			}
		}
		for range 4 { // each pause begins anew
			pause([]sdk.SplitID{"a"}, nil)
			before := o.next
			fetch(3)
			l.inOrder("a", 0, before)
			pause(nil, []sdk.SplitID{"a"})
			l.settle()
			l.inOrder("a", 0, before+3)
			fetch(5)
		}
		pause([]sdk.SplitID{"a"}, nil)
		fetch(3)
		o.let <- struct{}{}
		synctest.Wait()
		if _, err := l.poll(); err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), "paused") {
			t.Errorf("poll: %v, want an error that names the paused split", err)
		}
		l.close()
	})
}
