package model

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// Delivery is how ordinary commands reach a reader.
type Delivery uint8

// Deliveries.
const (
	Well    Delivery = iota
	Refused          // try again later
	NoAcks           // they arrive, and are said to have been refused
	Twice
)

// task is one reader: one attempt after the other.
type task struct {
	w       *World
	id      sdk.ReaderID
	attempt protocol.Attempt
	loop    *reader.Loop
	gate    *exchange.Gate // takes the barriers that come out of the reader

	// the world's lock guards what follows.
	reader *modelReader
	held   chan struct{} // closed when the reader may go on

	delivery atomic.Uint32 // a Delivery; offers come with the lock held and without
}

// prepare makes the next attempt, with what it is restored with.
func (t *task) prepare(splits []protocol.Split) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.attempt++
	t.attempt, t.reader = t.w.attempt, nil
	t.deliver(Well)
	t.held = make(chan struct{})
	close(t.held)
	t.loop = reader.New(reader.Config{
		Reader: t.id, Attempt: t.attempt, Parallelism: t.w.cfg.Parallelism, Source: t.w.cfg.Source,
		Limits:  reader.Limits{Turn: sdk.TurnLimits{Records: 1, Bytes: 1, Duration: time.Second}, Hard: time.Hour, Cancel: time.Hour},
		Mailbox: mailbox.Limits{Commands: 4, Bytes: 1 << 16, ReservedCommands: 1 << 10, ReservedBytes: 1 << 20, PayloadBytes: 1 << 14, RetryAfter: time.Millisecond},
		Budget:  mailbox.NewBudget(1 << 20), Now: time.Now, Watchdog: t.w.dog, Reports: readerReports{t.w}, Coordinator: answers{&t.w.port, t.w},
		Stats: &telemetry.Reader{}, Logger: slog.New(slog.DiscardHandler), Metrics: sdk.DiscardMetrics,
		Seams: &seam.Seams{Reach: t.reach}, Splits: splits, Lineage: []protocol.Attempt{t.attempt},
	})
	c := exchange.NewChannel(1<<10, func() {}, t.loop.Ring)
	t.gate = exchange.NewGate([]*exchange.Channel{c})
	t.loop.Attach(exchange.NewRouter(exchange.Forward, []*exchange.Channel{c}))
}

// reach keeps the loop where it is while the reader is held.
func (t *task) reach(at seam.At) error {
	if at.Point == seam.Turn {
		t.w.mu.Lock()
		held := t.held
		t.w.mu.Unlock()
		<-held
	}
	return nil
}

func (t *task) open() bool {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.reader != nil && t.reader.working
}

// deliver says how commands reach the reader from now on.
func (t *task) deliver(d Delivery) { t.delivery.Store(uint32(d)) }

// hold keeps the reader from its commands, or lets it go on.
func (t *task) hold(hold bool) {
	synctest.Wait()
	t.w.mu.Lock()
	select {
	case <-t.held:
		if hold {
			t.held = make(chan struct{})
		}
	default:
		if !hold {
			close(t.held)
		}
	}
	t.w.mu.Unlock()
	if hold {
		t.loop.Ring() // it parks behind the gate
	}
	synctest.Wait()
}

// endSplit lets the reader end one of its splits, if it has any.
func (t *task) endSplit(nth int) {
	synctest.Wait()
	t.w.mu.Lock()
	if r := t.reader; r != nil && len(r.splits) > 0 {
		r.ending[r.splits[nth%len(r.splits)]] = true
	}
	t.w.mu.Unlock()
	if t.open() {
		t.reader.ring()
	}
	synctest.Wait()
}

// end ends the attempt.
func (t *task) end() {
	t.loop.Fence()
	t.loop.Terminal()
	t.hold(false)
	<-t.loop.Done()
	for it, _, ok := t.gate.Next(); ok && it.Batch == nil; it, _, ok = t.gate.Next() {
	}
}

// Offer is the reader's mailbox as the coordinator sees it.
func (t *task) Offer(e *protocol.Envelope) protocol.Ack {
	box := t.loop.Mailbox()
	later := protocol.Ack{Status: protocol.RetryLater, RetryAfter: time.Millisecond}
	if e.Kind.Reserved() {
		return box.Offer(e)
	}
	switch Delivery(t.delivery.Load()) {
	case Well:
	case Refused:
		return later
	case NoAcks:
		box.Offer(e)
		return later
	case Twice:
		box.Offer(e)
	}
	return box.Offer(e)
}

// FailReader lets a reader die and start again from the newest completed checkpoint. A checkpoint that is under way is given up.
func (w *World) FailReader(id sdk.ReaderID) {
	w.Abort()
	t := w.tasks[id]
	w.loop.ReaderDown(id, t.attempt)
	t.end()
	w.mu.Lock()
	w.ref.failReader(id)
	w.mu.Unlock()
	t.prepare(w.restored(len(w.tasks))[id].Splits)
	t.loop.Start(context.Background())
	synctest.Wait()
}

// FailCoordinator lets the epoch die; the next one starts from the newest completed checkpoint.
func (w *World) FailCoordinator() {
	w.Abort()
	w.loop.Fence()
	<-w.loop.Done()
	w.mu.Lock()
	w.ref.failCoordinator()
	w.mu.Unlock()
	w.epoch()
	synctest.Wait()
}

// FailAll lets everything die, and start again with another parallelism.
func (w *World) FailAll(parallelism int) {
	w.Abort()
	w.Stop()
	parts := w.restored(parallelism)
	now := map[sdk.SplitID]sdk.ReaderID{}
	for _, p := range parts {
		for _, s := range p.Splits {
			now[s.ID] = p.Reader
		}
	}
	w.mu.Lock()
	w.ref.failAll(now)
	w.mu.Unlock()
	w.begin(parallelism, parts)
}

// restored is what readers start with: their own part, or with another parallelism a share of all.
func (w *World) restored(parallelism int) []protocol.ReaderState {
	out := make([]protocol.ReaderState, parallelism)
	for i := range out {
		out[i].Reader = sdk.ReaderID(i)
	}
	if w.last == nil {
		return out
	}
	if len(w.last.Readers) == parallelism {
		for _, r := range w.last.Readers {
			out[r.Reader] = r
		}
		return out
	}
	var splits []protocol.Split
	for _, r := range w.last.Readers {
		splits = append(splits, r.Splits...)
	}
	slices.SortFunc(splits, func(a, b protocol.Split) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for i, s := range splits {
		out[i%parallelism].Splits = append(out[i%parallelism].Splits, s)
	}
	return out
}

// readerReports is the job's side of the readers.
type readerReports struct{ w *World }

func (p readerReports) Opened(id sdk.ReaderID, attempt protocol.Attempt) {
	p.w.mu.Lock()
	t := p.w.tasks[id]
	t.reader.working = true
	loop := p.w.loop
	p.w.mu.Unlock()
	loop.ReaderUp(id, attempt, t, &telemetry.Reader{})
}

func (p readerReports) Snapshot(id sdk.ReaderID, attempt protocol.Attempt, ckpt sdk.CheckpointID, state protocol.ReaderState) {
	p.w.mu.Lock()
	mine := p.w.pending && ckpt == p.w.id
	if mine {
		p.w.cut.Readers = append(p.w.cut.Readers, state)
	}
	loop := p.w.loop
	p.w.mu.Unlock()
	if mine {
		loop.Included(ckpt, id, attempt, state.Metadata.Watermarks)
	}
}

func (readerReports) Ended(sdk.ReaderID, protocol.Attempt, bool) {}

func (p readerReports) Failed(id sdk.ReaderID, _ protocol.Attempt, err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.ref.wrong("reader %d: %v", id, err)
}

// answers passes on what readers say, and notes registrations.
type answers struct {
	reader.Coordinator
	w *World
}

func (a answers) Registered(id sdk.ReaderID, attempt protocol.Attempt, epoch protocol.Epoch, answer reader.Registration) {
	a.w.mu.Lock()
	if epoch == a.w.cfg.Epoch {
		a.w.ref.register(id)
	}
	a.w.mu.Unlock()
	a.Coordinator.Registered(id, attempt, epoch, answer)
}
