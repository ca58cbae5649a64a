package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

var errScripted = errors.New("scripted failure")

// rig is a sink loop with a scripted writer behind channels that the test fills. Run it in a bubble.
type rig struct {
	t        *testing.T
	loop     *Loop
	channels []*exchange.Channel
	stats    *telemetry.Sink

	mu      sync.Mutex
	journal []string
	states  []protocol.SinkState
	failure error
	on      map[string]func(context.Context) error // by call
}

// writerKind says which optional abilities the scripted writer has.
type writerKind int

const (
	flusher writerKind = iota
	committer
	discarder
)

type scriptedSink struct {
	*rig
	kind writerKind
}

func (scriptedSink) Name() string { return "scripted" }

func (s scriptedSink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	s.note("new %s/%d of %d attempt %d", ctx.Job(), ctx.Task(), ctx.Parallelism(), ctx.Attempt())
	if err := s.call(context.Background(), "NewWriter"); err != nil {
		return nil, err
	}
	if ctx.Logger() == nil || ctx.Metrics() == nil {
		return nil, errors.New("the context lacks something")
	}
	switch s.kind {
	case flusher:
		return writer{s.rig}, nil
	case committer:
		return committing{writer{s.rig}}, nil
	case discarder:
		return discarding{committing{writer{s.rig}}}, nil
	default:
		return nil, fmt.Errorf("unknown kind %d", s.kind)
	}
}

// writer notes its calls. Its offsets stand for the records.
type writer struct{ *rig }

func (w writer) Open(ctx context.Context) error { return w.noted(ctx, "open") }

func (w writer) Write(ctx context.Context, batch *sdk.Batch) error {
	var offsets []string
	for rec := range batch.All() {
		offsets = append(offsets, fmt.Sprint(rec.Offset))
	}
	w.note("write %s", strings.Join(offsets, " "))
	return w.call(ctx, "write")
}
func (w writer) Flush(ctx context.Context) error { return w.noted(ctx, "flush") }
func (w writer) Close(ctx context.Context) error {
	if ctx.Err() != nil {
		w.note("close with an ended context")
	}
	return w.noted(ctx, "close")
}

type committing struct{ writer }

func (w committing) Prepare(ctx context.Context, id sdk.CheckpointID) ([]byte, error) {
	w.note("prepare %d", id)
	if err := w.call(ctx, "prepare"); err != nil {
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		return nil, err
	}
	return fmt.Appendf(nil, "part-%d", id), nil
}

// errNothing makes Prepare answer that there is nothing to commit.
var errNothing = errors.New("nothing to commit")

func (w committing) Commit(ctx context.Context, data []byte) error {
	w.note("commit %s", data)
	return w.call(ctx, "commit")
}

func (w committing) Restore(ctx context.Context, prepared [][]byte) error {
	w.note("restore %s", prepared)
	return w.call(ctx, "restore")
}

type discarding struct{ committing }

func (w discarding) Discard(ctx context.Context, data []byte) error {
	w.note("discard %s", data)
	return w.call(ctx, "discard")
}

var (
	_ sdk.Writer    = writer{}
	_ sdk.Committer = committing{}
	_ sdk.Discarder = discarding{}
)

func newRig(t *testing.T, kind writerKind, inputs int, restore Restore) *rig {
	t.Helper()
	r := &rig{t: t, stats: &telemetry.Sink{}, on: map[string]func(context.Context) error{}}
	r.loop = New(Config{
		Job: "job", Task: 1, Parallelism: 3, Attempt: 9, Sink: scriptedSink{r, kind}, Restore: restore, Reports: reports{r},
		CommitAttempts: 4, RetryInitial: 10 * time.Millisecond, RetryMax: 30 * time.Millisecond, CloseTimeout: 5 * time.Second,
		Now: time.Now, Stats: r.stats, Logger: slog.New(slog.DiscardHandler), Metrics: sdk.DiscardMetrics,
	})
	for range inputs {
		r.channels = append(r.channels, exchange.NewChannel(8, r.loop.Ring, func() {}))
	}
	r.loop.Attach(r.channels)
	return r
}

// started is newRig with an open writer and an empty journal.
func started(t *testing.T, kind writerKind, inputs int) *rig {
	t.Helper()
	r := newRig(t, kind, inputs, Restore{})
	r.start()
	r.forget()
	return r
}

func (r *rig) start() {
	r.loop.Start(r.t.Context())
	r.t.Cleanup(r.stop)
	synctest.Wait()
}

func (r *rig) stop() {
	r.loop.Terminal()
	<-r.loop.Done()
}

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = append(r.journal, fmt.Sprintf(format, args...))
}

func (r *rig) noted(ctx context.Context, call string) error {
	r.note("%s", call)
	return r.call(ctx, call)
}

func (r *rig) call(ctx context.Context, name string) error {
	r.mu.Lock()
	f := r.on[name]
	r.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx)
}

func (r *rig) when(call string, f func(context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on[call] = f
}

func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = nil
}

func (r *rig) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.journal, ", ")
}

func (r *rig) want(what, want string) {
	r.t.Helper()
	synctest.Wait()
	if got := r.log(); got != want {
		r.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func (r *rig) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// send gives input i one batch with the given offsets.
func (r *rig) send(i int, offsets ...int64) {
	b := r.channels[i].Get()
	for _, n := range offsets {
		b.Append(&sdk.Record{Offset: n})
	}
	r.channels[i].Send(b)
	r.channels[i].Flush()
}

// barrier sends the barrier down every input.
func (r *rig) barrier(id sdk.CheckpointID) {
	for _, c := range r.channels {
		c.Barrier(protocol.BarrierPayload{Checkpoint: id, Kind: protocol.Periodic})
	}
}

// reports is the job's side.
type reports struct{ r *rig }

func (p reports) Opened(int, protocol.Attempt) { p.r.note("opened") }

func (p reports) Prepared(_ int, _ protocol.Attempt, id sdk.CheckpointID, s protocol.SinkState) {
	var parts []string
	for _, x := range s.Prepared {
		parts = append(parts, fmt.Sprintf("%d:%s", x.Checkpoint, x.Data))
	}
	p.r.note("prepared %d %v written %d", id, parts, s.Written)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.states = append(p.r.states, s)
}

func (p reports) Committed(_ int, _ protocol.Attempt, id sdk.CheckpointID) {
	p.r.note("committed %d", id)
}

func (p reports) Failed(_ int, _ protocol.Attempt, err error) {
	p.r.note("failed")
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.failure = err
}
