package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/sdk"
)

// source is the fake source with faults around its calls, and with an eye on who owns which split.
type source struct {
	*fake.Source
	of     *life
	owners *owners
}

func newSourceOf(of *life) (*source, error) {
	s, err := fake.New(of.plan.Source)
	if err != nil {
		return nil, err
	}
	return &source{Source: s, of: of, owners: &owners{of: of, reader: map[sdk.SplitID]*readerOf{}}}, nil
}

func (s *source) NewEnumerator(ctx sdk.EnumeratorContext[fake.Split], state *sdk.VersionedBytes) (sdk.Enumerator[fake.Split], error) {
	e := &enumerator{of: s.of}
	err := s.of.chaos.around(context.Background(), EnumeratorNew, 0, func() (err error) {
		e.Enumerator, err = s.Source.NewEnumerator(ctx, state)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (s *source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[fake.Split], error) {
	r, err := s.Source.NewReader(ctx)
	if err != nil {
		return nil, err
	}
	mine := newReaderOf(s.of, s.owners, int(ctx.Reader()))
	mine.Reader = r.(*fake.Reader)
	s.of.striker.begins(ctx.Reader(), ctx.NotifyAvailable)
	return mine, nil
}

// enumerator is a fake's with faults.
type enumerator struct {
	sdk.Enumerator[fake.Split]
	of *life
}

var (
	_ sdk.FinishedHandler[fake.Split] = (*enumerator)(nil)
	_ sdk.CheckpointListener          = (*enumerator)(nil)
)

func (e *enumerator) call(place Place, f func() error) error {
	return e.of.chaos.around(context.Background(), place, 0, f)
}

func (e *enumerator) Start() error { return e.call(EnumeratorStart, e.Enumerator.Start) }
func (e *enumerator) Close() error { return e.call(EnumeratorClose, e.Enumerator.Close) }

func (e *enumerator) AddReader(r sdk.ReaderInfo) error {
	return e.call(EnumeratorAdd, func() error { return e.Enumerator.AddReader(r) })
}

func (e *enumerator) ReturnSplits(splits []fake.Split) error {
	return e.call(EnumeratorReturn, func() error { return e.Enumerator.ReturnSplits(splits) })
}

func (e *enumerator) Snapshot(id sdk.CheckpointID) (state sdk.VersionedBytes, err error) {
	err = e.call(EnumeratorCut, func() (err error) {
		state, err = e.Enumerator.Snapshot(id)
		return err
	})
	return state, err
}

func (e *enumerator) SplitsFinished(splits []fake.Split) error {
	return e.call(EnumeratorEnded, func() error { return e.Enumerator.(sdk.FinishedHandler[fake.Split]).SplitsFinished(splits) })
}

func (e *enumerator) CheckpointComplete(id sdk.CheckpointID) error {
	return e.call(EnumeratorDone, func() error { return e.Enumerator.(sdk.CheckpointListener).CheckpointComplete(id) })
}

func (e *enumerator) CheckpointAborted(id sdk.CheckpointID) error {
	return e.call(EnumeratorAbort, func() error { return e.Enumerator.(sdk.CheckpointListener).CheckpointAborted(id) })
}

// owners checks that no two live readers of a life have the same split. A reader owns what it was given until it ends, the
// splits that it finished included.
type owners struct {
	of     *life
	mu     sync.Mutex
	reader map[sdk.SplitID]*readerOf
}

func (o *owners) take(r *readerOf, splits []fake.Split) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !r.aliveLocked() {
		return // given up inside of a call that returned at last: nothing that it reads counts
	}
	o.of.note("reader %d takes %v", r.task, splits)
	for _, s := range splits {
		id := s.SplitID()
		if old := o.reader[id]; old != nil && old != r && old.aliveLocked() {
			o.of.world.history.violate("split %s is given to reader %d while reader %d has it", id, r.task, old.task)
		}
		if r.taken[id] {
			o.of.world.history.violate("split %s is given to reader %d twice", id, r.task)
		}
		r.taken[id] = true
		o.reader[id] = r
	}
}

// readerOf is a fake's with faults. The lock of owners guards what is below it.
type readerOf struct {
	*fake.Reader
	of     *life
	owners *owners
	task   int

	over  bool                 // it failed, or is being closed
	taken map[sdk.SplitID]bool // by this attempt
	began moment               // when it was opened: until the first poll the engine counts one call
	ready bool                 // it was polled
	since moment               // when the running call began; zero outside of calls
}

// moment is one by both clocks: that of the job, which may jump, and that of timers, which does not.
type moment struct{ job, timers time.Time }

func (m moment) isZero() bool { return m.timers.IsZero() }

// moment is now.
func (l *life) moment() moment { return moment{job: l.now(), timers: time.Now()} }

// passed reports that d has passed since by one of the clocks. Which one the engine goes by depends on what it waits for.
func (l *life) passed(since moment, d time.Duration) bool {
	return l.now().Sub(since.job) >= d || time.Since(since.timers) >= d
}

func newReaderOf(of *life, o *owners, task int) *readerOf {
	return &readerOf{of: of, owners: o, task: task, taken: map[sdk.SplitID]bool{}}
}

// aliveLocked: an attempt counts until it failed, was closed, or is in a call for longer than the engine waits for one.
func (r *readerOf) aliveLocked() bool {
	return !r.over && (r.since.isZero() || !r.of.passed(r.since, r.of.plan.Options.PollCancel))
}

// call notes the time of a call and its failure.
func (r *readerOf) call(f func() error) (err error) {
	r.begin()
	failed := true
	defer func() { r.mark(moment{}, failed) }()
	err = f()
	failed = err != nil
	return err
}

func (r *readerOf) begin() {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	r.alone()
	r.since = r.of.moment()
	switch {
	case r.began.isZero():
		r.began = r.since
	case !r.ready:
		r.since = r.began
	}
}

// alone checks that no other goroutine is in the reader.
func (r *readerOf) alone() {
	if !r.since.isZero() {
		r.of.violate("reader %d is called while it is in a call", r.task)
	}
}

func (r *readerOf) mark(since moment, over bool) {
	r.owners.mu.Lock()
	defer r.owners.mu.Unlock()
	r.since, r.over = since, r.over || over
}

func (r *readerOf) Open(ctx context.Context) error {
	return r.call(func() error {
		return r.of.chaos.around(ctx, ReaderOpen, r.task, func() error { return r.Reader.Open(ctx) })
	})
}

func (r *readerOf) Poll(turn *sdk.Turn, out sdk.Output) (status sdk.PollStatus, err error) {
	r.ready = true // only its own goroutine looks
	r.of.order.turn(sdk.ReaderID(r.task))
	err = r.call(func() (err error) {
		status, err = r.Reader.Poll(turn, out)
		return err
	})
	return status, err
}

func (r *readerOf) AddSplits(splits []fake.Split) error {
	return r.call(func() error {
		r.owners.take(r, splits)
		return r.of.chaos.around(context.Background(), ReaderAdd, r.task, func() error { return r.Reader.AddSplits(splits) })
	})
}

func (r *readerOf) Snapshot(id sdk.CheckpointID) (splits []fake.Split, err error) {
	err = r.call(func() error {
		return r.of.chaos.around(context.Background(), ReaderCut, r.task, func() (err error) {
			splits, err = r.Reader.Snapshot(id)
			return err
		})
	})
	return splits, err
}

func (r *readerOf) CheckpointComplete(id sdk.CheckpointID) error {
	return r.call(func() error {
		return r.of.chaos.around(context.Background(), ReaderDone, r.task, func() error { return r.Reader.CheckpointComplete(id) })
	})
}

func (r *readerOf) Close() error {
	r.begin()
	r.mark(r.of.moment(), true)
	return r.Reader.Close()
}
