package kinesis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/sdk"
)

// world is an engine small enough to be stopped anywhere: one enumerator, readers, and checkpoints that are cut and completed when the test
// says so, or on request. It runs in the test's goroutine, in a bubble, so time passes only while everything waits.
type world struct {
	t       *testing.T
	srv     *kinesistest.Server // nil on the wall
	on      streamServer        // srv, or a service elsewhere
	wall    bool                // the time is the one on the wall, not that of a bubble
	source  *Source
	readers int
	metrics *instruments
	log     *logbook

	enum    sdk.Enumerator[Split]
	tasks   []*task
	posts   chan func()
	bell    chan struct{}
	timers  map[string]*time.Timer
	calls   map[string]context.CancelFunc
	err     error
	wanted  bool
	never   bool // the job takes no checkpoints
	byHand  bool // requested checkpoints wait for the test
	noMore  int
	failed  error
	next    sdk.CheckpointID
	pending *saved
	last    *saved
	events  bool // events are dropped
}

// task is a reader attempt.
type task struct {
	w        *world
	id       sdk.ReaderID
	r        sdk.Reader[Split]
	turn     *sdk.Turn
	out      []sdk.Record
	finished []Split
	ended    bool
}

// saved is a checkpoint.
type saved struct {
	id       sdk.CheckpointID
	state    sdk.VersionedBytes
	splits   [][]Split
	finished [][]Split
	out      [][]sdk.Record
	total    []sdk.Record // committed with this checkpoint and those before
	cut      []int        // records of each reader that are in it and in none before
}

// inWorld runs a test in a bubble, with a server that has a stream.
func inWorld(t *testing.T, shards int, configure func(*Source), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.New(kinesistest.Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if err := srv.CreateStream("orders", shards); err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, srv: srv, on: srv, readers: 1, source: sourceOf(srv), next: 1}
		if configure != nil {
			configure(w.source)
		}
		w.test(test)
	})
}

// test runs a test and leaves nothing running.
func (w *world) test(test func(w *world)) {
	defer func() {
		if w.t.Failed() {
			w.t.Logf("log:\n%s", w.log)
		}
		w.kill()
	}()
	test(w)
}

// stream is the name of the stream.
func (w *world) stream() string { return w.source.Stream }

// hosts makes each server's address its own: what readers of one stream share outlives them, and a bubble must not meet another one's.
var hosts atomic.Int64

func sourceOf(srv *kinesistest.Server) *Source {
	return &Source{
		Stream: "orders", Region: "eu-west-1", Credentials: Credentials{AccessKeyID: "a", SecretAccessKey: "b"},
		Endpoint: fmt.Sprintf("http://kinesis-%d.test", hosts.Add(1)),
		Client:   []func(*aws.Options){func(o *aws.Options) { o.HTTPClient = srv.HTTPClient() }},
	}
}

// start starts the job, from the last completed checkpoint when there is one.
func (w *world) start() {
	w.t.Helper()
	if err := w.tryStart(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryStart() error {
	w.t.Helper()
	w.posts, w.timers, w.calls = make(chan func(), 1024), map[string]*time.Timer{}, map[string]context.CancelFunc{}
	w.bell = make(chan struct{}, 1)
	w.metrics, w.log = newInstruments(), &logbook{}
	w.failed, w.noMore, w.pending, w.wanted = nil, 0, nil, false
	var state *sdk.VersionedBytes
	if w.last != nil {
		state = &w.last.state
	}
	var err error
	if w.enum, err = w.source.NewEnumerator(coordinator{w}, state); err != nil {
		return err
	}
	w.tasks = nil
	for id := range w.readers {
		w.tasks = append(w.tasks, w.newTask(sdk.ReaderID(id)))
	}
	if w.last != nil {
		for id, splits := range w.last.splits {
			w.add(w.tasks[id%w.readers], splits)
		}
	}
	if err := w.enum.Start(); err != nil {
		return err
	}
	if w.last != nil {
		for _, finished := range w.last.finished {
			w.must(w.enum.(sdk.FinishedHandler[Split]).SplitsFinished(finished))
		}
	}
	for _, task := range w.tasks {
		w.must(w.enum.AddReader(w.info(task)))
	}
	return nil
}

func (w *world) info(t *task) sdk.ReaderInfo {
	info := sdk.ReaderInfo{ID: t.id}
	splits, err := t.r.Snapshot(0)
	w.must(err)
	for _, s := range splits {
		info.Splits = append(info.Splits, s.SplitID())
	}
	for _, s := range t.finished {
		info.Finished = append(info.Finished, s.SplitID())
	}
	return info
}

func (w *world) newTask(id sdk.ReaderID) *task {
	t := &task{w: w, id: id}
	t.turn = sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
	r, err := w.source.NewReader(t)
	w.must(err)
	w.must(r.Open(w.t.Context()))
	t.r = r
	return t
}

func (w *world) add(t *task, splits []Split) { w.must(t.r.AddSplits(slices.Clone(splits))) }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// kill ends the process without a word.
func (w *world) kill() {
	for _, t := range w.tasks {
		_ = t.r.Close()
	}
	w.tasks = nil
	if w.enum != nil {
		_ = w.enum.Close()
	}
	w.enum = nil
	for _, cancel := range w.calls {
		cancel()
	}
	for _, timer := range w.timers {
		timer.Stop()
	}
	if !w.wall {
		synctest.Wait()
	}
}

// until lets everything run until done says so, or the time is over.
func (w *world) until(limit time.Duration, done func() bool) bool {
	w.t.Helper()
	if w.wall {
		limit = min(limit, untilOnTheWall)
	}
	end := time.Now().Add(limit)
	for !done() {
		if w.err = w.step(); w.err != nil || w.failed != nil {
			w.t.Log("stopped:", w.err, w.failed)
			return done()
		}
		if !time.Now().Before(end) {
			return false
		}
	}
	return true
}

// problem is what ended the job, if anything did.
func (w *world) problem() error { return errors.Join(w.err, w.failed) }

const (
	// onTheWall is the longest that something runs there without an event to wait for: a look at the shards and several polls.
	onTheWall = 1200 * time.Millisecond
	// untilOnTheWall is the longest wait for an event there.
	untilOnTheWall = 2 * time.Minute
)

// run lets everything run for a while.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	if w.wall {
		d = min(d, onTheWall)
	}
	w.until(d, func() bool { return false })
}

// step serves whatever is there, or waits a little.
func (w *world) step() error {
	busy := false
	select {
	case post := <-w.posts:
		post()
		busy = true
	default:
	}
	for _, t := range w.tasks {
		more, err := t.poll()
		if err != nil {
			return err
		}
		busy = busy || more
	}
	if w.wanted && !w.byHand {
		w.wanted = false
		w.checkpoint()
		busy = true
	}
	if busy {
		return nil
	}
	idle := time.NewTimer(100 * time.Millisecond)
	defer idle.Stop()
	select {
	case post := <-w.posts:
		post()
	case <-w.bell:
	case <-idle.C:
	}
	return nil
}

func (t *task) poll() (bool, error) {
	if t.ended {
		return false, nil
	}
	t.turn.Restart()
	status, err := t.r.Poll(t.turn, t)
	t.ended = status == sdk.EndOfInput
	return status == sdk.MoreAvailable, err
}

// cut takes a checkpoint without completing it.
func (w *world) cut() {
	w.t.Helper()
	state, err := w.enum.Snapshot(w.next)
	w.must(err)
	s := &saved{id: w.next, state: state}
	w.next++
	for _, t := range w.tasks {
		splits, err := t.r.Snapshot(s.id)
		w.must(err)
		s.splits = append(s.splits, throughCodec(w.t, splits))
		s.finished = append(s.finished, throughCodec(w.t, t.finished))
		s.out = append(s.out, slices.Clone(t.out))
		s.cut = append(s.cut, len(t.out))
	}
	w.pending = s
}

// complete completes the checkpoint that was cut.
func (w *world) complete() {
	w.t.Helper()
	s := w.pending
	if w.last != nil { // what was committed before stays
		s.total = slices.Clone(w.last.total)
	}
	s.total = append(s.total, slices.Concat(s.out...)...)
	w.pending, w.last = nil, s
	for i, t := range w.tasks {
		t.out = slices.Clone(t.out[s.cut[i]:])
		t.finished = slices.DeleteFunc(t.finished, func(f Split) bool {
			return slices.ContainsFunc(s.finished[i], func(g Split) bool { return g.Shard == f.Shard })
		})
		w.must(w.enum.(sdk.FinishedHandler[Split]).SplitsFinished(s.finished[i]))
	}
	w.must(w.enum.(sdk.CheckpointListener).CheckpointComplete(s.id))
}

func (w *world) checkpoint() {
	w.cut()
	w.complete()
}

// committed are the records of the last completed checkpoint.
func (w *world) committed() []sdk.Record {
	if w.last == nil {
		return nil
	}
	return w.last.total
}

// all are the records that are committed or emitted.
func (w *world) all() []sdk.Record { return slices.Concat(w.committed(), w.emitted()) }

// emitted are the records that readers emitted and that are not committed.
func (w *world) emitted() (all []sdk.Record) {
	for _, t := range w.tasks {
		all = append(all, t.out...)
	}
	return all
}

// held are the shards that readers hold, in order.
func (w *world) held() []string {
	var ids []string
	for _, t := range w.tasks {
		splits, err := t.r.Snapshot(0)
		w.must(err)
		for _, s := range splits {
			ids = append(ids, s.Shard)
		}
	}
	slices.Sort(ids)
	return ids
}

// put writes n records, with keys that spread over the shards, and a number that grows for each key.
func (w *world) put(from, n int) {
	w.t.Helper()
	records := make([]kinesistest.Record, n)
	for i := range records {
		records[i] = kinesistest.Record{PartitionKey: fmt.Sprintf("k%d", (from+i)%13), Data: fmt.Appendf(nil, "%d", from+i)}
	}
	_, err := w.on.Put(w.stream(), records...)
	w.must(err)
}

// each checks that the records are from..from+n-1, each once, and in order for each key.
func (w *world) each(records []sdk.Record, from, n int) {
	w.t.Helper()
	seen, last := map[int]int{}, map[string]int{}
	for i := range records {
		var v int
		if _, err := fmt.Sscan(string(records[i].Value), &v); err != nil {
			w.t.Fatal(err)
		}
		seen[v]++
		key := string(records[i].Key)
		if before, ok := last[key]; ok && v <= before {
			w.t.Errorf("key %s: %d comes after %d", key, v, before)
		}
		last[key] = v
	}
	for i := from; i < from+n; i++ {
		if seen[i] != 1 {
			w.t.Errorf("record %d was delivered %d times", i, seen[i])
		}
		delete(seen, i)
	}
	if len(seen) > 0 {
		w.t.Errorf("records that nobody wrote: %v", slices.Sorted(maps.Keys(seen)))
	}
}

func throughCodec(t *testing.T, splits []Split) []Split {
	t.Helper()
	out := make([]Split, len(splits))
	for i, s := range splits {
		data, err := Codec{}.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if out[i], err = (Codec{}).Decode(codecVersion, data); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The task is what a reader sees of the engine, and its output.
var (
	_ sdk.ReaderContext = (*task)(nil)
	_ sdk.Output        = (*task)(nil)
)

func (t *task) Reader() sdk.ReaderID { return t.id }
func (t *task) Parallelism() int     { return t.w.readers }
func (t *task) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(t.w.log, nil)) }
func (t *task) Metrics() sdk.Metrics { return t.w.metrics }
func (t *task) RequestSplit()        {}
func (t *task) NotifyAvailable()     { ring(t.w.bell) }
func (t *task) SendEvent(e sdk.Event) bool {
	if t.w.events {
		return true
	}
	enum := t.w.enum
	t.w.post(func() { t.w.must(enum.(sdk.EnumeratorEventHandler).HandleReaderEvent(t.id, e)) })
	return true
}

func (t *task) Emit(rec sdk.Record) bool {
	t.out = append(t.out, rec)
	t.turn.Consume(1, rec.Size())
	return true
}

func (t *task) EmitView(v sdk.View, from int) (int, bool) {
	to := from
	for to < v.Len() && t.turn.Records() > 0 && t.turn.Bytes() > 0 {
		var rec sdk.Record
		if v.Record(to, &rec) {
			t.out = append(t.out, rec)
		}
		t.turn.Consume(1, v.Bytes(to, to+1))
		to++
	}
	return to - from, true
}

func (t *task) FinishSplit(final sdk.Split) { t.finished = append(t.finished, final.(Split)) }
