package base

import (
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/sdk"
)

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
		if len(l.out.finished) != 2 || len(l.r.list) != 0 {
			t.Errorf("finished %v, left %d; want both and none", l.out.finished, len(l.r.list))
		}
		if status := l.must(); status != sdk.EndOfInput {
			t.Errorf("polled again: %s, want EndOfInput again", status)
		}
		l.close()
	})
}
