package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

var errScripted = errors.New("scripted failure")

const firstEpoch = protocol.Epoch(5)

// bubble runs f as a parallel test in a bubble of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// rig is one coordinator epoch after the other with a scripted enumerator, and readers that the test plays. Run it in a bubble.
type rig struct {
	t       *testing.T
	loop    *Loop
	cfg     Config
	port    Port
	dog     *watchdog.Watchdog
	workers *Workers
	stats   *telemetry.Coordinator
	script  *scripted
	readers []*fakeReader

	mu      sync.Mutex
	journal []string
	cuts    map[sdk.CheckpointID]protocol.CoordinatorState
	failure error
}

// newRig prepares an epoch for some readers. change may edit the configuration.
func newRig(t *testing.T, parallelism int, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, workers: NewWorkers(2), cuts: map[sdk.CheckpointID]protocol.CoordinatorState{}}
	r.dog = watchdog.New(250*time.Millisecond, time.Now)
	r.cfg = Config{
		Job: "job", Epoch: firstEpoch, Parallelism: parallelism, Checkpoints: true,
		TrackerSplits: 100, TrackerBytes: 10_000, PayloadBytes: 4096, RetryInitial: 10 * time.Millisecond, RetryMax: 40 * time.Millisecond,
		Cancel: 30 * time.Second, Workers: r.workers, Watchdog: r.dog, Reports: reports{r}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Metrics: sdk.DiscardMetrics,
	}
	if change != nil {
		change(&r.cfg)
	}
	for id := range parallelism {
		r.readers = append(r.readers, &fakeReader{rig: r, id: sdk.ReaderID(id)})
	}
	r.prepare()
	return r
}

// prepare makes the loop of the configured epoch, with an enumerator of its own.
func (r *rig) prepare() {
	r.stats = &telemetry.Coordinator{}
	r.script = &scripted{rig: r, on: map[string]func() error{}}
	r.cfg.Source, r.cfg.Stats = connector.Erase[split](r.script), r.stats
	r.loop = New(r.cfg)
}

// start runs the prepared epoch; every running reader is made known to it.
func (r *rig) start() {
	r.port.Set(r.loop)
	r.loop.Start(r.t.Context())
	l := r.loop
	r.t.Cleanup(func() { l.Fence(); <-l.Done() })
	for _, rd := range r.readers {
		if rd.attempt != 0 && !rd.dead {
			r.loop.ReaderUp(rd.id, rd.attempt, rd, &telemetry.Reader{})
		}
	}
	synctest.Wait()
}

// started is newRig with every reader up and registered, and an empty journal.
func started(t *testing.T, parallelism int, change func(*Config)) *rig {
	t.Helper()
	r := newRig(t, parallelism, change)
	for _, rd := range r.readers {
		rd.begin(nil)
	}
	r.start()
	r.serve()
	r.forget()
	return r
}

// failover ends the epoch and starts the next one from a cut, or from nothing.
func (r *rig) failover(from *Restored) {
	r.loop.Fence()
	<-r.loop.Done()
	r.cfg.Epoch++
	r.cfg.Restored = from
	r.prepare()
	r.start()
}

// serve lets every reader apply what is in its mailbox until nothing is left to do.
func (r *rig) serve() {
	for {
		synctest.Wait()
		busy := false
		for _, rd := range r.readers {
			busy = rd.apply() || busy
		}
		if !busy {
			return
		}
	}
}

// do runs f on the loop, as a call of the enumerator would.
func (r *rig) do(f func()) {
	r.loop.inbox.put("test", func() error { f(); return nil })
	synctest.Wait()
}

func (r *rig) assign(reader sdk.ReaderID, names ...string) {
	r.t.Helper()
	r.do(func() {
		if err := r.script.ctx.Assign(reader, typed(names...)); err != nil {
			r.t.Errorf("assign %v: %v", names, err)
		}
	})
}

// checkpoint takes checkpoint id with every reader and completes it. It returns the cut.
func (r *rig) checkpoint(id sdk.CheckpointID) *Restored {
	r.t.Helper()
	r.loop.Cut(id, protocol.Periodic)
	r.serve()
	cut := r.cut(id)
	for _, rd := range r.readers {
		r.loop.Included(id, rd.id, rd.attempt, rd.states[id].Metadata.Watermarks)
	}
	r.loop.Complete(id, evidence(cut.Readers))
	r.serve()
	return cut
}

// cut puts the parts of checkpoint id together.
func (r *rig) cut(id sdk.CheckpointID) *Restored {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	state, ok := r.cuts[id]
	if !ok {
		r.t.Fatalf("the coordinator's part of checkpoint %d is missing", id)
	}
	cut := &Restored{Coordinator: state}
	for _, rd := range r.readers {
		part, ok := rd.states[id]
		if !ok {
			r.t.Fatalf("reader %d's part of checkpoint %d is missing", rd.id, id)
		}
		cut.Readers = append(cut.Readers, part)
	}
	return cut
}

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = append(r.journal, fmt.Sprintf(format, args...))
}

func (r *rig) forget() {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = nil
}

func (r *rig) log() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.journal, ", ")
}

func (r *rig) want(what, want string) {
	r.t.Helper()
	if got := r.log(); got != want {
		r.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func (r *rig) failed() error {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// fakeReader is one reader task as the coordinator sees it: a mailbox whose answers can be scripted, and an attempt that
// applies what it admitted when the test says so.
type fakeReader struct {
	*rig
	id      sdk.ReaderID
	attempt protocol.Attempt
	dead    bool // takes nothing, applies nothing

	answer func(e *protocol.Envelope) *protocol.Ack // nil, or nil from it: admit

	box      []*protocol.Envelope // guarded by rig.mu, like what follows
	admitted mailbox.Window
	epoch    protocol.Epoch
	applied  mailbox.Window
	owned    []reader.Held
	finished []reader.Held
	commands []string // everything that was offered, in order
	states   map[sdk.CheckpointID]protocol.ReaderState
	seq      protocol.Attempt
}

// begin starts a new attempt that holds the splits of a restored part.
func (rd *fakeReader) begin(from *protocol.ReaderState) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.seq++
	rd.attempt = protocol.Attempt(100*int(rd.id)) + 10 + rd.seq
	rd.dead, rd.answer, rd.box, rd.owned, rd.finished = false, nil, nil, nil, nil
	rd.admitted, rd.applied, rd.epoch = mailbox.Window{}, mailbox.Window{}, 0
	if rd.states == nil {
		rd.states = map[sdk.CheckpointID]protocol.ReaderState{}
	}
	if from == nil {
		return
	}
	for _, s := range from.Splits {
		rd.owned = append(rd.owned, reader.Held{Split: s, Durable: true})
	}
}

// restart lets the reader die and come back from a part of a checkpoint.
func (rd *fakeReader) restart(from *protocol.ReaderState) {
	rd.loop.ReaderDown(rd.id, rd.attempt)
	rd.begin(from)
	rd.loop.ReaderUp(rd.id, rd.attempt, rd, &telemetry.Reader{})
	rd.serve()
}

// script says how the mailbox answers; nil admits everything.
func (rd *fakeReader) script(answer func(e *protocol.Envelope) *protocol.Ack) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.answer = answer
}

// refuse answers commands of a kind with RetryLater.
func (rd *fakeReader) refuse(kind protocol.CommandKind) {
	rd.script(func(e *protocol.Envelope) *protocol.Ack {
		if e.Kind == kind {
			return &protocol.Ack{Status: protocol.RetryLater, Reason: protocol.ReasonMailboxCount, RetryAfter: 10 * time.Millisecond}
		}
		return nil
	})
}

// Offer implements [Mailbox].
func (rd *fakeReader) Offer(e *protocol.Envelope) protocol.Ack {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.commands = append(rd.commands, fmt.Sprintf("%s#%d", e.Kind, e.Sequence))
	if e.Target != rd.attempt || rd.dead {
		return protocol.Ack{Status: protocol.StaleTarget, Reason: protocol.ReasonOldAttempt}
	}
	if rd.answer != nil {
		if ack := rd.answer(e); ack != nil {
			return *ack
		}
	}
	return rd.admit(e)
}

func (rd *fakeReader) admit(e *protocol.Envelope) protocol.Ack {
	if e.Kind == protocol.Register {
		rd.admitted = mailbox.Window{}
	}
	if rd.admitted.Seen(e.Sequence) {
		return protocol.Ack{Status: protocol.Duplicate}
	}
	rd.admitted.Add(e.Sequence)
	rd.box = append(rd.box, e)
	return protocol.Ack{Status: protocol.Accepted}
}

func (rd *fakeReader) offered() string {
	synctest.Wait()
	rd.mu.Lock()
	defer rd.mu.Unlock()
	s := strings.Join(rd.commands, " ")
	rd.commands = nil
	return s
}

// apply applies everything that was admitted and reports whether that was anything.
func (rd *fakeReader) apply() bool {
	rd.mu.Lock()
	box := rd.box
	rd.box = nil
	rd.mu.Unlock()
	for _, e := range box {
		rd.applyOne(e)
	}
	return len(box) > 0
}

func (rd *fakeReader) applyOne(e *protocol.Envelope) {
	switch e.Kind {
	case protocol.Register:
		rd.epoch, rd.applied = e.Epoch, mailbox.Window{}
		rd.applied.Add(e.Sequence)
		rd.port.Registered(rd.id, rd.attempt, e.Epoch, reader.Registration{
			Watermark: rd.applied.Watermark(rd.epoch), Owned: slices.Clone(rd.owned), Finished: slices.Clone(rd.finished),
		})
		return
	case protocol.AddSplits:
		p, err := protocol.DecodeAddSplits(e.PayloadVersion, e.Payload)
		if err != nil {
			rd.t.Error(err)
		}
		for _, s := range p.Splits {
			rd.owned = append(rd.owned, reader.Held{Split: s})
		}
	case protocol.Barrier:
		p, err := protocol.DecodeBarrier(e.PayloadVersion, e.Payload)
		if err != nil {
			rd.t.Error(err)
		}
		rd.applied.Add(e.Sequence)
		rd.mu.Lock()
		rd.states[p.Checkpoint] = protocol.ReaderState{
			Reader: rd.id, Splits: splitsOf(rd.owned), Finished: splitsOf(rd.finished),
			Metadata: protocol.Metadata{Lineage: []protocol.Attempt{rd.attempt}, Watermarks: []protocol.Watermark{rd.applied.Watermark(rd.epoch)}},
		}
		rd.mu.Unlock()
		return
	case protocol.CheckpointComplete:
		p, err := protocol.DecodeCheckpoint(e.PayloadVersion, e.Payload)
		if err != nil {
			rd.t.Error(err)
		}
		rd.completed(p.Checkpoint)
	case protocol.NoMoreSplits, protocol.SourceEvent, protocol.CheckpointAborted, protocol.GracefulClose,
		protocol.SchemaChangeBegin, protocol.SchemaChangeEnd, protocol.PauseOrResume:
	}
	rd.applied.Add(e.Sequence)
	rd.port.Applied(rd.id, rd.attempt, rd.applied.Watermark(rd.epoch))
}

// completed makes durable what this attempt's part of a checkpoint contains, and releases its evidence.
func (rd *fakeReader) completed(id sdk.CheckpointID) {
	part, ok := rd.states[id]
	if !ok || part.Metadata.Lineage[0] != rd.attempt {
		return
	}
	for i := range rd.owned {
		if containsSplit(part.Splits, rd.owned[i].Split.ID) {
			rd.owned[i].Durable = true
		}
	}
	rd.finished = slices.DeleteFunc(rd.finished, func(h reader.Held) bool { return containsSplit(part.Finished, h.Split.ID) })
}

func containsSplit(splits []protocol.Split, id sdk.SplitID) bool {
	return slices.ContainsFunc(splits, func(s protocol.Split) bool { return s.ID == id })
}

// finish turns an owned split into evidence.
func (rd *fakeReader) finish(id sdk.SplitID) {
	i := slices.IndexFunc(rd.owned, func(h reader.Held) bool { return h.Split.ID == id })
	rd.finished = append(rd.finished, rd.owned[i])
	rd.owned = slices.Delete(rd.owned, i, i+1)
}

func (rd *fakeReader) holds() string { return namesOf(splitsOf(rd.owned)) }

func splitsOf(held []reader.Held) []protocol.Split {
	var out []protocol.Split
	for _, h := range held {
		out = append(out, h.Split)
	}
	return out
}

// split is the split of the scripted source.
type split struct{ ID sdk.SplitID }

func (s split) SplitID() sdk.SplitID { return s.ID }

func typed(names ...string) []split {
	out := make([]split, len(names))
	for i, n := range names {
		out[i] = split{sdk.SplitID(n)}
	}
	return out
}

func untyped(names ...string) []protocol.Split {
	out := make([]protocol.Split, len(names))
	for i, n := range names {
		data, _ := sdk.JSONCodec[split]{}.Encode(split{sdk.SplitID(n)}) // a split of one field always encodes
		out[i] = protocol.Split{ID: sdk.SplitID(n), Data: sdk.VersionedBytes{Version: 1, Data: data}}
	}
	return out
}

func join(splits []split) string {
	out := make([]string, len(splits))
	for i, s := range splits {
		out[i] = string(s.ID)
	}
	return strings.Join(out, " ")
}

// scripted is source and enumerator. The enumerator keeps a list of what is unassigned, which is its state, and notes its calls.
type scripted struct {
	rig        *rig
	ctx        sdk.EnumeratorContext[split]
	unassigned []string // loop only, or set before start

	mu sync.Mutex
	on map[string]func() error // by call
}

func (s *scripted) when(call string, f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[call] = f
}

func (s *scripted) call(name, format string, args ...any) error {
	s.rig.note(format, args...)
	s.mu.Lock()
	f := s.on[name]
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f()
}

func (*scripted) Capability() sdk.Capability   { return sdk.Capability{Connector: "scripted"} }
func (*scripted) SplitCodec() sdk.Codec[split] { return sdk.JSONCodec[split]{} }

func (*scripted) NewReader(sdk.ReaderContext) (sdk.Reader[split], error) {
	return nil, errors.New("the coordinator's tests have no reader")
}

func (s *scripted) NewEnumerator(ctx sdk.EnumeratorContext[split], state *sdk.VersionedBytes) (sdk.Enumerator[split], error) {
	s.ctx = ctx
	if state != nil {
		s.unassigned = strings.Fields(string(state.Data))
	}
	return s, s.call("NewEnumerator", "new %v", s.unassigned)
}

func (s *scripted) Start() error { return s.call("Start", "start") }

func (s *scripted) AddReader(in sdk.ReaderInfo) error {
	s.unassigned = slices.DeleteFunc(s.unassigned, func(id string) bool {
		return slices.Contains(in.Splits, sdk.SplitID(id)) || slices.Contains(in.Finished, sdk.SplitID(id))
	})
	return s.call("AddReader", "reader %d %v %v", in.ID, in.Splits, in.Finished)
}

func (s *scripted) ReturnSplits(splits []split) error {
	s.unassigned = append(s.unassigned, strings.Fields(join(splits))...)
	return s.call("ReturnSplits", "returned %s", join(splits))
}

func (s *scripted) Snapshot(id sdk.CheckpointID) (sdk.VersionedBytes, error) {
	err := s.call("Snapshot", "snapshot %d", id)
	return sdk.VersionedBytes{Version: 1, Data: []byte(strings.Join(s.unassigned, " "))}, err
}

func (s *scripted) Close() error { return s.call("Close", "close") }

func (s *scripted) HandleSplitRequest(id sdk.ReaderID) error {
	return s.call("HandleSplitRequest", "request %d", id)
}

func (s *scripted) HandleReaderEvent(id sdk.ReaderID, e sdk.Event) error {
	return s.call("HandleReaderEvent", "event %d %s", id, e.Kind)
}

func (s *scripted) SplitsFinished(splits []split) error {
	for _, x := range splits {
		s.unassigned = slices.DeleteFunc(s.unassigned, func(id string) bool { return id == string(x.ID) })
	}
	return s.call("SplitsFinished", "finished %s", join(splits))
}

func (s *scripted) CheckpointComplete(id sdk.CheckpointID) error {
	return s.call("CheckpointComplete", "complete %d", id)
}

func (s *scripted) CheckpointAborted(id sdk.CheckpointID) error {
	return s.call("CheckpointAborted", "aborted %d", id)
}

// reports is the job's side.
type reports struct{ r *rig }

func (p reports) Reconciled(epoch protocol.Epoch) { p.r.note("reconciled %d", epoch) }

func (p reports) Snapshot(_ protocol.Epoch, id sdk.CheckpointID, state protocol.CoordinatorState) {
	p.r.note("cut %d", id)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.cuts[id] = state
}

func (p reports) Declined(_ protocol.Epoch, id sdk.CheckpointID, _ error) {
	p.r.note("declined %d", id)
}
func (p reports) CheckpointWanted(protocol.Epoch) { p.r.note("wanted") }

func (p reports) ReaderBroken(id sdk.ReaderID, _ protocol.Attempt, err error) {
	p.r.note("broken %d", id)
	if !errors.Is(err, ErrReserved) {
		p.r.t.Errorf("broken: %v", err)
	}
}

func (p reports) Failed(epoch protocol.Epoch, err error) {
	p.r.note("failed %d", epoch)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.failure = err
}

// call is CallAsync for tests: done notes what it was given.
func (r *rig) call(key string, work func(context.Context) (string, error), options sdk.CallOptions) {
	sdk.CallAsync(r.script.ctx, key, work, func(v string, err error) {
		switch {
		case errors.Is(err, errCallTimeout):
			r.note("%s: timeout", key)
		case err != nil:
			r.note("%s: error", key)
		default:
			r.note("%s: %s", key, v)
		}
	}, options)
}
