package progress_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/progress"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

func TestStatus(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	m := progress.NewMeter(true)
	if got, want := m.Status(telemetry.Progress{At: start, Readers: 2}), "0 records  0/s  no checkpoint yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Restored(884_030)
	m.Checkpointed(11 * time.Millisecond)
	got := m.Status(telemetry.Progress{
		At: start.Add(time.Second), Written: 400_000, Pending: 1_848_000, PendingKnown: true, Lag: 8 * time.Second, LagKnown: true,
		LastCheckpoint: 57, CheckpointAge: 400 * time.Millisecond, Readers: 2,
	})
	if want := "1,284,030 records  400,000/s  lag 1.8 M (8.0 s)  40%  checkpoint 57, 0.4 s ago, 11 ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = m.Status(telemetry.Progress{At: start.Add(2 * time.Second), Written: 400_000, Readers: 2, Blocked: 2, LagKnown: true, Lag: time.Minute})
	if want := "1,284,030 records  200,000/s  lag 1 min  waiting for the sink  no checkpoint yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A rate looks back a few seconds only, however often it is asked for.
func TestRateForgets(t *testing.T) {
	m := progress.NewMeter(false)
	at := time.Unix(0, 0)
	var written uint64
	var last string
	for i := range 200 {
		at = at.Add(100 * time.Millisecond)
		if i < 100 {
			written += 1000
		}
		last = m.Status(telemetry.Progress{At: at, Written: written})
	}
	if !strings.Contains(last, " 0/s") {
		t.Errorf("got %q", last)
	}
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := progress.NewScreen(&out, 10)
	s.Status("working hard")
	s.Line("done")
	s.Status("")
	if got, want := out.String(), "\r\x1b[Kworking h\r\x1b[Kdone\nworking h\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	s = progress.NewScreen(&out, 0)
	s.Status("working")
	s.Line("done")
	if got := out.String(); got != "done\n" {
		t.Errorf("got %q", got)
	}
}
