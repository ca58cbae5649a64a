package kafka

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

func (l *lag) shown(in *instruments) (float64, bool) {
	l.report(sdk.NothingAvailable)
	return in.get(sdk.GaugePendingRecords)
}

func TestUnknownLagIsAbsentAndNeverZero(t *testing.T) {
	t.Parallel()
	in := newInstruments()
	l := newLag(in)
	if _, ok := l.shown(in); ok {
		t.Error("lag is present without splits")
	}
	l.track(Split{Topic: "a", Offset: 10, Stop: NoStop})
	if _, ok := l.shown(in); ok {
		t.Error("lag is present before an end is known")
	}
	l.learn("a-0", -1) // what a broker says with an error
	if _, ok := l.shown(in); ok {
		t.Error("lag is present after an answer without an end")
	}
	l.learn("a-0", 15)
	if v, ok := l.shown(in); !ok || v != 5 {
		t.Errorf("lag %v, present %t", v, ok)
	}
	l.forget("a-0")
	if _, ok := l.shown(in); ok {
		t.Error("lag is present after the split has gone")
	}
}

func TestLagIsTheSumOverTheSplitsWhoseEndIsKnown(t *testing.T) {
	t.Parallel()
	in := newInstruments()
	l := newLag(in)
	l.track(Split{Topic: "a", Stop: NoStop})
	l.track(Split{Topic: "b", Stop: 100, Offset: 40})
	l.track(Split{Topic: "c", Stop: NoStop})
	l.learn("a-0", 10)
	if v, _ := l.shown(in); v != 70 {
		t.Errorf("lag %v, want 10 of a and 60 of b", v)
	}
	l.advance("a-0", 12, time.Now()) // a record that came after the end was asked for
	l.advance("b-0", 50, time.Now())
	if v, _ := l.shown(in); v != 50 {
		t.Errorf("lag %v, want 50", v)
	}
	l.advance("gone-0", 1, time.Now())
	l.learn("gone-0", 1)
	if v, _ := l.shown(in); v != 50 {
		t.Errorf("lag %v after news of a split that is not tracked", v)
	}
}

func TestLagFollowsAReaderThroughFetchesAndIdleness(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	produce(t, b, numbered("orders", 0, 0, 300)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	u := read(t, s, splits...)
	u.records(64)
	if n := len(u.out.records); n < 300 {
		u.r.(*reader).lag.report(sdk.NothingAvailable)
		if v, ok := u.ctx.metrics.get(sdk.GaugePendingRecords); !ok || v != float64(300-n) {
			t.Errorf("after %d of 300 records the lag is %v, present %t", n, v, ok)
		}
	}
	u.records(300)
	if v, ok := u.ctx.metrics.get(sdk.GaugePendingRecords); !ok || v != 0 {
		t.Errorf("at the end the lag is %v, present %t", v, ok)
	}
	if v, ok := u.ctx.metrics.get(sdk.GaugeLagSeconds); !ok || v < 0 || v > 60 {
		t.Errorf("age of the newest record %v, present %t", v, ok)
	}
}

func TestTheLagOfARestoredReaderIsKnownBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset = 10 // at the end: no fetch will bring anything
	ctx := newLent()
	l := newLag(ctx.Metrics())
	f, err := newFetcher(s.withDefaults(), ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.HandleSplits(base.Change[Split]{Added: splits}); err != nil {
		t.Fatal(err)
	}
	if err := f.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, ok := l.shown(ctx.metrics); !ok || v != 0 {
		t.Errorf("lag %v, present %t", v, ok)
	}
}

func TestLogLinesAreLimitedAndTheHeldBackCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := clientLog{newLimitedLog(slog.New(slog.NewTextHandler(&text, nil)))}
		for range 100 {
			log.Log(kgo.LogLevelWarn, "unable to open connection", "broker", "seed 0")
		}
		log.Log(kgo.LogLevelInfo, "chatter")
		if n := strings.Count(text.String(), "unable to open"); n != logBurst {
			t.Errorf("%d lines, want %d", n, logBurst)
		}
		if err := sleep(t.Context(), logEvery); err != nil { // virtual time
			t.Fatal(err)
		}
		log.Log(kgo.LogLevelError, "still gone")
		if !strings.Contains(text.String(), "level=ERROR msg=\"kafka client: still gone\" suppressed_before=90") {
			t.Errorf("log:\n%s", text.String())
		}
		if strings.Contains(text.String(), "chatter") {
			t.Error("an info line passed")
		}
	})
}
