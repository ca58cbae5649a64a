package engine_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// late holds back what a reader tells the coordinator, in order.
type late struct {
	mu      sync.Mutex
	holding bool
	held    []func()
}

func (l *late) tell(reader sdk.ReaderID, _ seam.Message, deliver func()) {
	l.mu.Lock()
	if l.holding && reader == 1 {
		l.held = append(l.held, deliver)
		deliver = func() {}
	}
	l.mu.Unlock()
	deliver()
}

func (l *late) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding = true
}

func (l *late) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, deliver := range l.held {
		deliver()
	}
	l.holding, l.held = false, nil
}

// While a restarted reader's registration is on its way the coordinator declines every cut. The job asks for one less and
// less often, and takes one soon after it can.
func TestADeclinedCutIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l late
		var fails atomic.Bool
		metrics := telemetry.NewRegistry("declined", telemetry.Options{})
		h, err := engine.Start(t.Context(), engine.Job{
			Name: "declined", Parallelism: 2, Source: engine.From(source(t, fake.Config{Splits: 4, RecordsPerSecond: 1000})), Sink: newLedger(),
			Checkpoint: engine.Checkpoint{Interval: 100 * time.Millisecond}, Metrics: metrics, Options: quick(),
			Seams: &seam.Seams{Tell: l.tell, Reach: func(at seam.At) error {
				if at.Point == seam.Turn && !at.Coordinator && at.Reader == 1 && fails.Swap(false) {
					return errors.New("gone")
				}
				return nil
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		l.hold()
		fails.Store(true)
		declined := func() uint64 { return metrics.Job().Aborted[telemetry.AbortCoordinator].Value() }
		time.Sleep(20 * time.Second) //nolint:forbidigo // the clock of the bubble
		completed := metrics.Job().Completed.Value()
		// Pauses of 10 ms, doubled up to a second: seven in the first 1.27 s, then one in each second.
		if n := declined(); n < 20 || n > 28 {
			t.Errorf("%d cuts were declined in 20 s, want 26 or so", n)
		}
		l.release()
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of the bubble
		if n := metrics.Job().Completed.Value() - completed; n < 5 {
			t.Errorf("%d checkpoints in the 2 s after the reader had registered, want one after a second and then one in each 100 ms", n)
		}
		h.Cancel()
		if _, err := h.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
