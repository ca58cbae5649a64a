package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// fortune is one job of the suite, over all its runs: a sink and checkpoints that outlive them.
type fortune[S sdk.Split, B Backend] struct {
	x      *trial[S, B]
	sink   *ledger
	store  *checkpoint.MemoryStore
	handle *engine.Handle

	completed chan time.Duration // how long checkpoints took; the newest only
}

func (x *trial[S, B]) job() *fortune[S, B] {
	f := &fortune[S, B]{x: x, store: checkpoint.NewMemory(), completed: make(chan time.Duration, 1)}
	f.sink = newLedger(func(rec *sdk.Record) (string, bool) { return x.h.Text(x.b, rec) })
	x.later(f.cancel)
	return f
}

// options restart at once, and as often as it takes.
func options(connector string) *engine.Options {
	o := engine.DefaultOptions()
	o.Allowlist = []string{connector} // which is here to get its record
	o.RetryInitial, o.RetryMax = time.Millisecond, 2*time.Millisecond
	o.RestartInitial, o.RestartMax, o.RestartLimit = 10*time.Millisecond, time.Second, 1000
	return &o
}

// run starts the job, or goes on with it.
func (f *fortune[S, B]) run(source sdk.Source[S], parallelism int, seams *seam.Seams) {
	h, err := engine.Start(context.Background(), engine.Job{
		Name: "conformance", Parallelism: parallelism, Source: engine.From(source), Sink: f.sink, Options: options(source.Capability().Connector), Seams: seams,
		Checkpoint: engine.Checkpoint{Interval: interval, Storage: f.store},
		Listener: engine.Listener{CheckpointDone: func(_ *protocol.Manifest, took time.Duration) {
			select {
			case <-f.completed:
			default:
			}
			f.completed <- took
		}},
	})
	f.x.must("start the job", err)
	f.handle = h
}

// interval is from one checkpoint of a job to the next.
const interval = time.Second

// goesOn lets the job go on for a time. On the wall that is as many checkpoints as it would take then, unless it ends before.
func (f *fortune[S, B]) goesOn(d time.Duration) {
	if !f.x.h.Wall {
		pass(d)
		return
	}
	timer := time.NewTimer(f.patient())
	defer timer.Stop()
	for range (d + interval/2) / interval {
		select {
		case <-f.completed:
		case <-f.handle.Done():
			return
		case <-timer.C:
			f.x.stop("no checkpoint completed within %s", f.patient())
		}
	}
}

// patient is how long a job may take for something, whatever restarts that needs.
func (f *fortune[S, B]) patient() time.Duration {
	return f.x.h.Discovery + 10*f.x.h.Delay + 10*time.Minute
}

// reaches waits until n values are visible.
func (f *fortune[S, B]) reaches(n int, when string) {
	timer := time.NewTimer(f.patient())
	defer timer.Stop()
	for {
		have, changed := f.sink.grown()
		if have >= n {
			return
		}
		select {
		case <-changed:
		case <-f.handle.Done():
			_, err := f.handle.Wait(context.Background())
			f.x.stop("%s the job ended with %d of %d records: %v", when, have, n, err)
		case <-timer.C:
			wrong := compare(f.sink.texts(), f.x.spans(), true)
			f.x.stop("%s %d of %d records were committed within %s: %s", when, have, n, f.patient(), wrong)
		}
	}
}

// spans are everything that was appended.
func (x *trial[S, B]) spans() []span {
	want := make([]span, len(x.appended))
	for i, n := range x.appended {
		want[i].to = n
	}
	return want
}

// ends waits for the end of the run.
func (f *fortune[S, B]) ends(when string, want ...engine.Outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), f.patient())
	defer cancel()
	result, err := f.handle.Wait(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.x.stop("%s the job did not end", when)
	case err != nil:
		f.x.stop("%s the job failed: %v", when, err)
	case !slices.Contains(want, result.Outcome):
		f.x.stop("%s the job ended with outcome %d, want one of %d", when, result.Outcome, want)
	}
	f.handle = nil
}

// stops ends the run with a savepoint.
func (f *fortune[S, B]) stops(when string) {
	f.handle.Stop()
	f.ends(when, engine.Stopped)
}

// cancel ends the run at once, as a kill does: its last checkpoint stands.
func (f *fortune[S, B]) cancel() {
	if f.handle == nil {
		return
	}
	f.handle.Cancel()
	ctx, cancel := context.WithTimeout(context.Background(), f.patient())
	defer cancel()
	if _, err := f.handle.Wait(ctx); err != nil {
		f.x.fail("the job was cancelled: %v", err)
	}
	f.handle = nil
}

// exactlyOnce fails unless what is visible is everything, once. Order is kept within an attempt, and by the forward exchange.
func (f *fortune[S, B]) exactlyOnce(when string) {
	if wrong := compare(f.sink.texts(), f.x.spans(), true); wrong != "" {
		f.x.fail("%s: %s", when, wrong)
	}
}

// appendAll adds n values to each part.
func (x *trial[S, B]) appendAll(n int) {
	for p := range x.appended {
		x.append(p, n)
	}
}
