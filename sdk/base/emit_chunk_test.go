package base

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// numbers is a view of fetched elements. Every third is no record, as a transaction marker.
type numbers []num

func (v numbers) Len() int                 { return len(v) }
func (v numbers) Bytes(from, to int) int64 { return int64(to-from) * 8 }
func (v numbers) Record(i int, into *sdk.Record) bool {
	*into = sdk.Record{Split: sdk.SplitID(v[i].split), Offset: v[i].n}
	return v[i].n%3 != 0
}

func emitNumbers(elements []num, st *at, out sdk.Output) (int, error) {
	n, ok := out.EmitView(numbers(elements), 0)
	if ok && n > 0 {
		st.Next = elements[n-1].n + 1
	}
	return n, nil
}

func TestEmitChunkAdvancesPastWhatWasAccepted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			c := &counting{size: 100, end: map[string]int64{"a": 1000}}
			l := newLoop(t, Config[num, at, at]{
				Fetcher:   func() (SplitReader[num, at], error) { return c, nil },
				EmitChunk: emitNumbers, RecordsPerSecond: rate,
			})
			l.add(at{"a", 1})
			l.noMore()
			started := time.Now()
			if err := l.run(); err != nil {
				t.Fatal(err)
			}
			var want []int64
			for n := range int64(1000) {
				if n%3 != 0 {
					want = append(want, n)
				}
			}
			if got := l.offsets("a"); !slices.Equal(got, want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
			if want := []at{{"a", 1000}}; !slices.Equal(l.out.finished, want) {
				t.Errorf("finished %v, want %v", l.out.finished, want)
			}
			if took := time.Since(started); rate > 0 && (took < 900*time.Millisecond || took > 1100*time.Millisecond) {
				t.Errorf("took %s at 1000 elements a second, want about a second", took)
			}
			l.close()
		})
	}
}

func TestEmitChunkThatNeverConsumesIsAnError(t *testing.T) {
	for name, consumed := range map[string]int{"in 100 turns": 0, "consumed 11 of 10": 11, "consumed -1 of 10": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counting{size: 10}
				l := newLoop(t, Config[num, at, at]{
					Fetcher:   func() (SplitReader[num, at], error) { return c, nil },
					EmitChunk: func([]num, *at, sdk.Output) (int, error) { return consumed, nil },
				})
				l.add(at{"a", 0})
				if err := l.run(); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `split "a"`) {
					t.Errorf("run: %v, want an error that says %q and names the split", err, name)
				}
				l.close()
			})
		})
	}
}

// An error of the author's emit ends the attempt and names the split; the position stays before the element.
func TestEmitErrorKeepsThePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10}
		cfg := c.config()
		cfg.Emit = func(e num, st *at, out sdk.Output) error {
			if e.n == 4 {
				return fmt.Errorf("cannot decode %d", e.n)
			}
			return emitNum(e, st, out)
		}
		l := newLoop(t, cfg)
		l.add(at{"a", 0})
		if err := l.run(); err == nil || !strings.Contains(err.Error(), `split "a": emit: cannot decode 4`) {
			t.Errorf("run: %v", err)
		}
		if splits, _ := l.r.Snapshot(1); splits[0].Next != 4 {
			t.Errorf("snapshot %v, want a at 4", splits)
		}
		l.close()
	})
}
