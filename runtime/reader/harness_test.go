package reader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

const (
	readerID = sdk.ReaderID(2)
	attempt  = protocol.Attempt(7)
)

// split is the split of the scripted source: a counter.
type split struct {
	ID  sdk.SplitID
	Pos int64
}

func (s split) SplitID() sdk.SplitID { return s.ID }

// rig is a reader loop with a scripted connector, between a channel that the test drains and a coordinator that is only a
// journal. Run it in a bubble: settle waits until the loop parks.
type rig struct {
	t       *testing.T
	loop    *Loop
	channel *exchange.Channel
	budget  *mailbox.Budget
	dog     *watchdog.Watchdog
	stats   *telemetry.Reader
	script  *scripted
	cfg     Config

	epoch protocol.Epoch
	seq   protocol.Sequence

	mu      sync.Mutex
	journal []string
	states  []protocol.ReaderState
	answers []Registration
	marks   []protocol.Watermark
	failure error
}

// scripted is the connector. Its reader keeps split positions and emits what was put; on says what else happens in a call.
type scripted struct {
	rig *rig
	ctx sdk.ReaderContext

	mu    sync.Mutex
	on    map[string]func() error // by call
	poll  func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error)
	ready []int64 // what Poll emits, one per turn

	splits map[sdk.SplitID]int64 // loop only
}

// newRig prepares a loop whose channel has the given credit. change may edit the configuration.
func newRig(t *testing.T, credit int, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, epoch: 1, budget: mailbox.NewBudget(1 << 20), stats: &telemetry.Reader{}}
	r.script = &scripted{rig: r, on: map[string]func() error{}, splits: map[sdk.SplitID]int64{}}
	r.dog = watchdog.New(250*time.Millisecond, time.Now)
	r.cfg = Config{
		Reader: readerID, Attempt: attempt, Parallelism: 3, Source: connector.Erase[split](r.script),
		Limits: Limits{Turn: sdk.TurnLimits{Records: 4, Bytes: 1000, Duration: 5 * time.Millisecond}, Hard: time.Second, Cancel: 30 * time.Second},
		Mailbox: mailbox.Limits{
			Commands: 16, Bytes: 4096, ReservedCommands: 16, ReservedBytes: 4096, PayloadBytes: 1024, RetryAfter: 10 * time.Millisecond,
		},
		Budget: r.budget, Now: time.Now, Watchdog: r.dog, Reports: reports{r}, Coordinator: coordinatorJournal{r}, Stats: r.stats,
		Logger: slog.New(slog.DiscardHandler), Metrics: sdk.DiscardMetrics, Lineage: []protocol.Attempt{attempt},
	}
	if change != nil {
		change(&r.cfg)
	}
	r.loop = New(r.cfg)
	r.channel = exchange.NewChannel(credit, func() {}, r.loop.Ring)
	r.loop.Attach(exchange.NewRouter(exchange.Forward, []*exchange.Channel{r.channel}))
	return r
}

// started is newRig with the loop running and registered with epoch 1.
func started(t *testing.T, credit int, change func(*Config)) *rig {
	t.Helper()
	r := newRig(t, credit, change)
	r.start()
	r.offer(protocol.Register, protocol.RegisterPayload{})
	r.settle()
	r.forget()
	return r
}

func (r *rig) start() {
	r.loop.Start(r.t.Context())
	r.t.Cleanup(r.stop)
	r.settle()
}

// stop ends the loop as the engine does, and waits for it.
func (r *rig) stop() {
	r.loop.Terminal()
	<-r.loop.Done()
}

// settle waits until every goroutine of the bubble waits.
func (r *rig) settle() { synctest.Wait() }

func (r *rig) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = append(r.journal, fmt.Sprintf(format, args...))
}

// forget empties the journal.
func (r *rig) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = nil
}

// log is the journal without the lines that begin with one of hide.
func (r *rig) log(hide ...string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, line := range r.journal {
		if !slices.ContainsFunc(hide, func(h string) bool { return strings.HasPrefix(line, h) }) {
			out = append(out, line)
		}
	}
	return strings.Join(out, ", ")
}

func (r *rig) count(line string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, l := range r.journal {
		if l == line {
			n++
		}
	}
	return n
}

func (r *rig) want(what, want string, hide ...string) {
	r.t.Helper()
	if got := r.log(hide...); got != want {
		r.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// lastState is the newest snapshot that was acknowledged.
func (r *rig) lastState() protocol.ReaderState {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		r.t.Fatal("no snapshot was acknowledged")
	}
	return r.states[len(r.states)-1]
}

func (r *rig) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// envelope makes the next command of the current epoch.
func (r *rig) envelope(kind protocol.CommandKind, p protocol.Payload) *protocol.Envelope {
	r.seq++
	return r.sequenced(r.epoch, r.seq, kind, p)
}

func (r *rig) sequenced(epoch protocol.Epoch, seq protocol.Sequence, kind protocol.CommandKind, p protocol.Payload) *protocol.Envelope {
	r.t.Helper()
	e, err := protocol.NewEnvelope(protocol.Header{
		Job: "job", SourceRuntime: "scripted", Epoch: epoch, Sender: protocol.Attempt(epoch), Target: attempt, Sequence: seq,
		Command: uint64(seq), Kind: kind,
	}, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

func (r *rig) admit(e *protocol.Envelope) {
	r.t.Helper()
	if ack := r.loop.Mailbox().Offer(e); ack.Status != protocol.Accepted {
		r.t.Fatalf("%s was not admitted: %+v", e.Kind, ack)
	}
}

// offer sends the next command and reports its sequence.
func (r *rig) offer(kind protocol.CommandKind, p protocol.Payload) protocol.Sequence {
	r.t.Helper()
	r.admit(r.envelope(kind, p))
	return r.seq
}

func (r *rig) barrier(id sdk.CheckpointID) protocol.ReaderState {
	r.t.Helper()
	r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: id, Kind: protocol.Periodic})
	r.settle()
	return r.lastState()
}

func (r *rig) assign(names ...sdk.SplitID) {
	r.t.Helper()
	r.offer(protocol.AddSplits, splitsPayload(names...))
}

func splitsPayload(names ...sdk.SplitID) protocol.AddSplitsPayload {
	var p protocol.AddSplitsPayload
	for _, id := range names {
		p.Splits = append(p.Splits, encoded(id, 0))
	}
	return p
}

func eventPayload(kind string) protocol.SourceEventPayload {
	return protocol.SourceEventPayload{Event: sdk.Event{Kind: kind}}
}

// received drains the channel: offsets of records, and minus the number of barriers.
func (r *rig) received() []int64 {
	var all []int64
	for {
		it, ok := r.channel.Receive()
		switch {
		case !ok:
			return all
		case it.Batch == nil:
			all = append(all, -int64(it.Barrier.Checkpoint))
		default:
			for rec := range it.Batch.All() {
				all = append(all, rec.Offset)
			}
			r.channel.Put(it.Batch)
		}
	}
}

// hold makes the next turn wait, and returns once the loop is inside it. The answer lets the turn go on.
func (r *rig) hold() (release func()) {
	r.t.Helper()
	gate := make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	r.script.polls(func(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
		once.Do(func() { close(entered) })
		<-gate
		return r.script.emit(turn, out)
	})
	r.script.ctx.NotifyAvailable()
	<-entered
	return sync.OnceFunc(func() { close(gate) })
}

// polls replaces what Poll does.
func (s *scripted) polls(f func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll = f
}

// when makes a call run f.
func (s *scripted) when(call string, f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[call] = f
}

// put makes records available and rings.
func (s *scripted) put(offsets ...int64) {
	s.mu.Lock()
	s.ready = append(s.ready, offsets...)
	s.mu.Unlock()
	s.ctx.NotifyAvailable()
}

func (s *scripted) call(name string) error {
	s.mu.Lock()
	f := s.on[name]
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f()
}

// emit is what Poll does unless told otherwise: one record per turn.
func (s *scripted) emit(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return sdk.NothingAvailable, nil
	}
	if !out.Emit(sdk.Record{Offset: s.ready[0]}) {
		return sdk.NothingAvailable, nil
	}
	s.ready = s.ready[1:]
	if len(s.ready) == 0 {
		return sdk.NothingAvailable, nil
	}
	return sdk.MoreAvailable, nil
}

func (*scripted) Capability() sdk.Capability   { return sdk.Capability{Connector: "scripted"} }
func (*scripted) SplitCodec() sdk.Codec[split] { return sdk.JSONCodec[split]{} }

func (*scripted) NewEnumerator(sdk.EnumeratorContext[split], *sdk.VersionedBytes) (sdk.Enumerator[split], error) {
	return nil, errors.New("the reader's tests have no enumerator")
}

func (s *scripted) NewReader(ctx sdk.ReaderContext) (sdk.Reader[split], error) {
	s.rig.note("new reader")
	s.ctx = ctx
	return s, s.call("NewReader")
}

func (s *scripted) Open(context.Context) error {
	s.rig.note("open")
	return s.call("Open")
}

func (s *scripted) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	s.rig.note("poll")
	if err := s.call("Poll"); err != nil {
		return sdk.NothingAvailable, err
	}
	s.mu.Lock()
	f := s.poll
	s.mu.Unlock()
	if f == nil {
		f = s.emit
	}
	return f(turn, out)
}

func (s *scripted) AddSplits(splits []split) error {
	for _, x := range splits {
		s.rig.note("add %s", x.ID)
		s.splits[x.ID] = x.Pos
	}
	return s.call("AddSplits")
}

func (s *scripted) Snapshot(id sdk.CheckpointID) ([]split, error) {
	s.rig.note("snapshot %d", id)
	var all []split
	for _, k := range slices.Sorted(maps.Keys(s.splits)) {
		all = append(all, split{k, s.splits[k]})
	}
	return all, s.call("Snapshot")
}

func (s *scripted) Wakeup() {
	s.rig.note("wakeup")
	_ = s.call("Wakeup")
}

func (s *scripted) Close() error {
	s.rig.note("close")
	return s.call("Close")
}

func (s *scripted) NoMoreSplits() error {
	s.rig.note("no more splits")
	return s.call("NoMoreSplits")
}

func (s *scripted) HandleEvent(e sdk.Event) error {
	s.rig.note("event %s", e.Kind)
	return s.call("HandleEvent")
}

func (s *scripted) PauseOrResume(pause, resume []sdk.SplitID) error {
	s.rig.note("pause %v resume %v", pause, resume)
	return s.call("PauseOrResume")
}

func (s *scripted) CheckpointComplete(id sdk.CheckpointID) error {
	s.rig.note("complete %d", id)
	return s.call("CheckpointComplete")
}

func (s *scripted) CheckpointAborted(id sdk.CheckpointID) error {
	s.rig.note("aborted %d", id)
	return s.call("CheckpointAborted")
}

// reports is the job's side.
type reports struct{ r *rig }

func (p reports) Opened(sdk.ReaderID, protocol.Attempt) { p.r.note("opened") }

func (p reports) Snapshot(_ sdk.ReaderID, _ protocol.Attempt, id sdk.CheckpointID, state protocol.ReaderState) {
	p.r.note("acknowledged %d", id)
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.states = append(p.r.states, state)
}

func (p reports) Ended(_ sdk.ReaderID, _ protocol.Attempt, ended bool) { p.r.note("ended %t", ended) }

func (p reports) Failed(_ sdk.ReaderID, _ protocol.Attempt, err error) {
	p.r.note("failed")
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.failure = err
}

// coordinatorJournal is the coordinator's side.
type coordinatorJournal struct{ r *rig }

func (c coordinatorJournal) Registered(_ sdk.ReaderID, _ protocol.Attempt, epoch protocol.Epoch, answer Registration) {
	c.r.note("registered %d", epoch)
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.answers = append(c.r.answers, answer)
}

func (c coordinatorJournal) Applied(_ sdk.ReaderID, _ protocol.Attempt, m protocol.Watermark) {
	c.r.note("applied %s", mark(m))
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.marks = append(c.r.marks, m)
}

func (c coordinatorJournal) RequestSplit(sdk.ReaderID, protocol.Attempt) { c.r.note("request") }

func (c coordinatorJournal) Event(_ sdk.ReaderID, _ protocol.Attempt, e sdk.Event) bool {
	c.r.note("sent %s", e.Kind)
	return true
}
