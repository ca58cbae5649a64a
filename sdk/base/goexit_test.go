package base

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

type exiting struct{}

func (exiting) Fetch(context.Context) (Fetched[num], error) {
	runtime.Goexit()
	return Fetched[num]{}, nil
}
func (exiting) HandleSplits(Change[at]) error { return nil }
func (exiting) Close() error                  { return nil }

// A failed assertion in a test's split reader ends its goroutine; the reader must neither hang nor be silent.
func TestGoexitInAFetchIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, Config[num, at, at]{Fetcher: func() (SplitReader[num, at], error) { return exiting{}, nil }, Emit: emitNum})
		l.add(at{"a", 0})
		synctest.Wait()
		if _, err := l.poll(); err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("poll: %v", err)
		}
		l.close()
	})
}
