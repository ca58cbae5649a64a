package base

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

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

func (d *deaf) Close() error { *d.closed++; return nil }

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
