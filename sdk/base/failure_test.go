package base

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/sdk"
)

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
				if err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), "base/failure_test.go:") {
					t.Errorf("error %v, want one that names boom, %s, and the line", err, where)
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

// A fetcher that goes on to ask for a split that it has finished asks the system for ever.
func TestASplitIsFinishedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &obstinate{let: make(chan struct{})}
		o.finished = "a"
		l := newLoop(t, Config[num, at, at]{Fetcher: func() (SplitReader[num, at], error) { return o, nil }, Emit: emitNum})
		l.add(at{"a", 0}, at{"b", 0})
		synctest.Wait()
		o.let <- struct{}{}
		synctest.Wait()
		l.must()
		o.let <- struct{}{}
		synctest.Wait()
		if _, err := l.poll(); err == nil || !strings.Contains(err.Error(), `split "a" as finished`) {
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
