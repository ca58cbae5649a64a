package base

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func TestBucketPaysDebtOfAFanOut(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	b := newBucket(100)
	if got := b.available(start); got != 5 {
		t.Fatalf("burst is %d, want a twentieth of a second: 5", got)
	}
	b.spend(25) // one element became 25 records
	if pause := b.pause(); pause < 210*time.Millisecond || pause > 211*time.Millisecond {
		t.Errorf("pause %s, want 210 ms: 20 records of debt and one to emit", pause)
	}
	if got := b.available(start.Add(209 * time.Millisecond)); got != 0 {
		t.Errorf("%d available a moment early", got)
	}
	if got := b.available(start.Add(211 * time.Millisecond)); got != 1 {
		t.Errorf("%d available after the pause, want 1", got)
	}
	if got := b.available(start.Add(time.Hour)); got != 5 {
		t.Errorf("%d available after an hour, want the burst and no more", got)
	}
}

func TestBucketOfATinyRateDoesNotOverflow(t *testing.T) {
	t.Parallel()
	b := newBucket(1e-12)
	b.spend(1)
	if pause := b.pause(); pause < maxPause || pause > maxPause+time.Second {
		t.Errorf("pause %s, want %s", pause, maxPause)
	}
}

func TestRateLimitHoldsOverTime(t *testing.T) {
	for _, fanOut := range []int{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			c := &counting{size: 50, end: map[string]int64{"a": 1000}}
			cfg := c.config()
			cfg.RecordsPerSecond = 100
			cfg.Emit = func(e num, st *at, out sdk.Output) error {
				for range fanOut {
					out.Emit(sdk.Record{Offset: e.n})
				}
				st.Next = e.n + 1
				return nil
			}
			l := newLoop(t, cfg)
			l.add(at{"a", 0})
			l.noMore()
			started := time.Now()
			if err := l.run(); err != nil {
				t.Fatal(err)
			}
			if n := len(l.out.records); n != 1000*fanOut {
				t.Errorf("%d records, want %d", n, 1000*fanOut)
			}
			want := time.Duration(fanOut) * 10 * time.Second
			if took := time.Since(started); took < want*99/100 || took > want*102/100 {
				t.Errorf("took %s, want %s", took, want)
			}
			l.close()
		})
	}
}

func TestCloseStopsTheTimerOfTheRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 50}
		cfg := c.config()
		cfg.RecordsPerSecond = 1
		l := newLoop(t, cfg)
		l.add(at{"a", 0})
		if status := l.settle(); status != sdk.NothingAvailable {
			t.Fatalf("status %s, want NothingAvailable while the limit holds", status)
		}
		l.close()
		rings := l.ctx.rings.Load()
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		if l.ctx.rings.Load() != rings {
			t.Error("rang after Close")
		}
	})
}
