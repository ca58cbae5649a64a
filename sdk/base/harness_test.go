package base

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// at is the split of these tests: a name and the next number to emit.
type at struct {
	Name string
	Next int64
}

func (a at) SplitID() sdk.SplitID { return sdk.SplitID(a.Name) }

// num is a fetched element.
type num struct {
	split string
	n     int64
}

// emitNum emits one record for an element and moves the position past it.
func emitNum(e num, st *at, out sdk.Output) error {
	if out.Emit(sdk.Record{Offset: e.n}) {
		st.Next = e.n + 1
	}
	return nil
}

// lent is a working ReaderContext: rings go to a one-slot doorbell, as in an engine.
type lent struct {
	doorbell chan struct{}
	rings    atomic.Int64
	log      *slog.Logger
}

func newLent() *lent {
	return &lent{doorbell: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
}

func (l *lent) Reader() sdk.ReaderID     { return 0 }
func (l *lent) Parallelism() int         { return 1 }
func (l *lent) Logger() *slog.Logger     { return l.log }
func (l *lent) Metrics() sdk.Metrics     { return sdk.DiscardMetrics }
func (l *lent) RequestSplit()            {}
func (l *lent) SendEvent(sdk.Event) bool { return true }
func (l *lent) NotifyAvailable() {
	l.rings.Add(1)
	select {
	case l.doorbell <- struct{}{}:
	default:
	}
}

// collector is the engine's output: it keeps what it was given and takes from the turn.
type collector struct {
	turn     *sdk.Turn
	records  []sdk.Record
	finished []at
	refuse   bool // refuse the next record and all after it
	asked    int  // calls of Emit and EmitView
	before   func()
}

func (c *collector) Emit(rec sdk.Record) bool {
	c.asked++
	if c.before != nil {
		c.before()
	}
	if c.refuse {
		return false
	}
	c.records = append(c.records, rec)
	c.turn.Consume(1, rec.Size())
	return true
}

func (c *collector) EmitView(v sdk.View, from int) (int, bool) {
	c.asked++
	if c.refuse {
		return 0, false
	}
	to := from
	for to < v.Len() && c.turn.Records() > 0 && c.turn.Bytes() > 0 {
		var rec sdk.Record
		if v.Record(to, &rec) {
			c.records = append(c.records, rec)
		}
		c.turn.Consume(1, v.Bytes(to, to+1))
		to++
	}
	return to - from, true
}

func (c *collector) FinishSplit(final sdk.Split) { c.finished = append(c.finished, final.(at)) }

// loop drives a reader as an engine would.
type loop[E any] struct {
	t    testing.TB
	ctx  *lent
	r    *Reader[E, at, at]
	out  *collector
	turn *sdk.Turn
}

func newLoop[E any](t testing.TB, cfg Config[E, at, at]) *loop[E] {
	t.Helper()
	ctx := newLent()
	r, err := NewReader(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: 5 * time.Millisecond}, time.Now, nil)
	return &loop[E]{t: t, ctx: ctx, r: r, turn: turn, out: &collector{turn: turn}}
}

func (l *loop[E]) add(splits ...at) {
	l.t.Helper()
	if err := l.r.AddSplits(splits); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loop[E]) noMore() {
	l.t.Helper()
	if err := l.r.NoMoreSplits(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *loop[E]) pause(pause, resume []sdk.SplitID) {
	l.t.Helper()
	if err := l.r.PauseOrResume(pause, resume); err != nil {
		l.t.Fatal(err)
	}
}

// poll does one turn.
func (l *loop[E]) poll() (sdk.PollStatus, error) {
	l.turn.Restart()
	return l.r.Poll(l.turn, l.out)
}

// must does one turn that may not fail.
func (l *loop[E]) must() sdk.PollStatus {
	l.t.Helper()
	status, err := l.poll()
	if err != nil {
		l.t.Fatal(err)
	}
	return status
}

// settle polls until nothing is available and nothing moves any more, or the input ends. In a bubble only.
func (l *loop[E]) settle() sdk.PollStatus {
	l.t.Helper()
	for {
		synctest.Wait()
		select {
		case <-l.ctx.doorbell:
		default:
		}
		status := l.must()
		if status == sdk.EndOfInput {
			return status
		}
		if status == sdk.NothingAvailable {
			synctest.Wait()
			select {
			case <-l.ctx.doorbell:
				continue
			default:
				return status
			}
		}
	}
}

// run polls, as an engine does, only when told to, until the input ends or a poll fails.
func (l *loop[E]) run() error {
	for {
		status, err := l.poll()
		switch {
		case err != nil:
			return err
		case status == sdk.EndOfInput:
			return nil
		case status == sdk.NothingAvailable:
			<-l.ctx.doorbell
		}
	}
}

func (l *loop[E]) close() {
	l.t.Helper()
	if err := l.r.Close(); err != nil {
		l.t.Error(err)
	}
}

// offsets are what was emitted of a split.
func (l *loop[E]) offsets(split sdk.SplitID) []int64 {
	var got []int64
	for _, rec := range l.out.records {
		if rec.Split == split {
			got = append(got, rec.Offset)
		}
	}
	return got
}

// inOrder fails unless exactly from..to-1 of the split were emitted, in order.
func (l *loop[E]) inOrder(split sdk.SplitID, from, to int64) {
	l.t.Helper()
	got := l.offsets(split)
	if int64(len(got)) != to-from {
		l.t.Errorf("split %s: %d records, want %d", split, len(got), to-from)
		return
	}
	for i, n := range got {
		if n != from+int64(i) {
			l.t.Errorf("split %s: record %d has number %d, want %d", split, i, n, from+int64(i))
			return
		}
	}
}

// counting is a split reader over an endless or bounded sequence of numbers per split. It is the connector of these tests:
// it obeys its context and loses nothing.
type counting struct {
	size    int              // elements per chunk
	end     map[string]int64 // where a split ends; missing is never
	latency time.Duration
	fail    func(split string, n int64) error // asked before element n
	gate    chan struct{}                     // when set, each fetch takes one

	mu      sync.Mutex
	splits  []at
	paused  map[sdk.SplitID]bool
	next    int
	changes []Change[at]
	fetches int
	brought int // fetches that returned a chunk
	closed  int
}

func (c *counting) Fetch(ctx context.Context) (Fetched[num], error) {
	c.mu.Lock()
	c.fetches++
	c.mu.Unlock()
	if c.latency > 0 {
		select {
		case <-time.After(c.latency):
		case <-ctx.Done():
			return Fetched[num]{}, context.Cause(ctx)
		}
	}
	if c.gate != nil {
		select {
		case <-c.gate:
		case <-ctx.Done():
			return Fetched[num]{}, context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.splits {
		i := c.next % len(c.splits)
		c.next++
		if !c.paused[c.splits[i].SplitID()] {
			return c.fetch(i)
		}
	}
	return Fetched[num]{}, errors.New("fetch without a split to fetch")
}

func (c *counting) fetch(i int) (Fetched[num], error) {
	s := &c.splits[i]
	c.brought++
	chunk := Chunk[num]{Split: s.SplitID()}
	end, bounded := c.end[s.Name]
	for len(chunk.Elements) < c.size && (!bounded || s.Next < end) {
		if c.fail != nil {
			if err := c.fail(s.Name, s.Next); err != nil {
				return Fetched[num]{Chunks: []Chunk[num]{chunk}}, err
			}
		}
		chunk.Elements = append(chunk.Elements, num{s.Name, s.Next})
		chunk.Bytes += 8
		s.Next++
	}
	got := Fetched[num]{Chunks: []Chunk[num]{chunk}}
	if bounded && s.Next >= end {
		got.Finished = []sdk.SplitID{s.SplitID()}
		c.splits = append(c.splits[:i], c.splits[i+1:]...)
	}
	return got, nil
}

func (c *counting) HandleSplits(ch Change[at]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, ch)
	for _, id := range ch.Removed {
		for i := range c.splits {
			if c.splits[i].SplitID() == id {
				c.splits = append(c.splits[:i], c.splits[i+1:]...)
				break
			}
		}
	}
	if c.paused == nil {
		c.paused = make(map[sdk.SplitID]bool)
	}
	c.splits = append(c.splits, ch.Added...)
	for _, s := range ch.Added {
		c.paused[s.SplitID()] = false
	}
	for _, id := range ch.Paused {
		c.paused[id] = true
	}
	for _, id := range ch.Resumed {
		c.paused[id] = false
	}
	return nil
}

func (c *counting) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *counting) config() Config[num, at, at] {
	return Config[num, at, at]{
		Fetcher: func() (SplitReader[num, at], error) { return c, nil },
		Emit:    emitNum,
	}
}
