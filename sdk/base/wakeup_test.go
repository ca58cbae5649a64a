package base

import (
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/sdk"
)

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
