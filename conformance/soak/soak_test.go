package main

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// TestMain lets the test binary serve the broker, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == brokerCommand {
		rate, err := strconv.Atoi(os.Args[2])
		if err != nil || serveBroker(rate) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A short form of make soak: it shows that the soak itself works, not that nothing grows.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for ten seconds; left out with -short")
	}
	s := soak{
		length: 10 * time.Second, life: 2 * time.Second, look: 250 * time.Millisecond, hang: 3 * time.Second, rate: 20_000, print: t.Logf,
	}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.lives < 3 {
		t.Errorf("%d lives", s.lives)
	}
}

// A job lives a day in virtual time: more than 4,000 checkpoints, a restart every hour, another parallelism each time.
func TestADayOfJobTimeGrowsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a day; left out with -short")
	}
	synctest.Test(t, func(t *testing.T) {
		const hours = 24
		store, metrics, sink := checkpoint.NewMemory(), telemetry.NewRegistry("day", telemetry.Options{}), blackhole.New(blackhole.Order)
		source, err := fake.New(fake.Config{Splits: 5, RecordsPerSecond: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		var looks []look
		for hour := range hours {
			h, err := engine.Start(t.Context(), engine.Job{
				Name: "day", Parallelism: 1 + hour%3, Metrics: metrics, Source: engine.From(source), Sink: sink,
				Checkpoint: engine.Checkpoint{Storage: store, Interval: 20 * time.Second},
			})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			l, err := observe(t.Context(), metrics, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			looks = append(looks, l)
			h.Stop()
			if _, err := h.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := metrics.Job().Completed.Value(); n < hours*170 {
			t.Errorf("%d checkpoints in a day", n)
		}
		if err := verdict(looks, t.Logf); err != nil {
			t.Error(err)
		}
	})
}

func TestVerdictSeesWhatGrows(t *testing.T) {
	flat := func() []look {
		looks := make([]look, 30)
		for i := range looks {
			looks[i] = look{heap: 40 << 20, goroutines: 50, files: 20, tracker: 4, state: 40 << 10}
		}
		return looks
	}
	if err := verdict(flat(), t.Logf); err != nil {
		t.Error(err)
	}
	for name, grow := range map[string]func(*look, int64){
		"heap": func(l *look, i int64) { l.heap += i << 20 }, "goroutines": func(l *look, i int64) { l.goroutines += 2 * i },
		"files": func(l *look, i int64) { l.files += i }, "tracker": func(l *look, i int64) { l.tracker += i }, "state": func(l *look, i int64) { l.state += i << 11 },
	} {
		looks := flat()
		for i := range looks {
			grow(&looks[i], int64(i))
		}
		if err := verdict(looks, func(string, ...any) {}); err == nil {
			t.Errorf("%s grew, and nobody noticed", name)
		}
	}
	if err := verdict(flat()[:5], t.Logf); err == nil {
		t.Error("five looks are taken for proof")
	}
}

func TestConsumerSeesLossAndRepetition(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		good   bool
	}{
		"good":          {[]string{"0/1", "0/0", "1/0", "2/0", "3/0"}, true},
		"lost":          {[]string{"0/2", "0/0", "1/0", "2/0", "3/0"}, false},
		"repeated":      {[]string{"0/1", "0/0", "0/1", "1/0", "2/0", "3/0"}, false},
		"one for other": {[]string{"0/2", "0/0", "0/0", "1/0", "2/0", "3/0"}, false},
	} {
		var all consumer
		for _, v := range c.values {
			if err := all.record(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := all.check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := new(consumer).record("9/1"); err == nil {
		t.Error("a record of a partition that is not there")
	}
}
