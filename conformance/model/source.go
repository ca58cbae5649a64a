package model

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// split is nothing but its name.
type split struct{ ID sdk.SplitID }

func (s split) SplitID() sdk.SplitID { return s.ID }

func ids(splits []split) []sdk.SplitID {
	out := make([]sdk.SplitID, len(splits))
	for i, s := range splits {
		out[i] = s.ID
	}
	return out
}

// source makes enumerators and readers that do only what the test says.
type source struct{ w *World }

func (source) Capability() sdk.Capability   { return sdk.Capability{Connector: "model"} }
func (source) SplitCodec() sdk.Codec[split] { return sdk.JSONCodec[split]{} }

func (s source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[split], error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	t := s.w.tasks[ctx.Reader()]
	t.reader = &modelReader{w: s.w, t: t, ring: ctx.NotifyAvailable, ending: map[sdk.SplitID]bool{}}
	return t.reader, nil
}

func (s source) NewEnumerator(ctx sdk.EnumeratorContext[split], state *sdk.VersionedBytes) (sdk.Enumerator[split], error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	e := &modelEnumerator{w: s.w, ctx: ctx, list: slices.Clone(s.w.all)}
	if state != nil {
		e.list = nil
		for name := range strings.FieldsSeq(string(state.Data)) {
			e.list = append(e.list, sdk.SplitID(name))
		}
	}
	s.w.enumerator = e
	return e, nil
}

// modelReader has splits, and ends them when it is told to. The world's lock guards it.
type modelReader struct {
	w       *World
	t       *task
	ring    func()
	splits  []sdk.SplitID
	ending  map[sdk.SplitID]bool
	told    int // how often no more splits
	working bool
}

func (r *modelReader) Open(context.Context) error { return nil }
func (r *modelReader) Wakeup()                    {}
func (r *modelReader) Close() error               { return nil }

func (r *modelReader) AddSplits(splits []split) error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for _, id := range ids(splits) {
		if r.working { // else it is what the attempt was restored with
			r.w.ref.apply(id, r.t.id)
		}
		r.splits = append(r.splits, id)
	}
	return nil
}

func (r *modelReader) NoMoreSplits() error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.told++
	return nil
}

func (r *modelReader) Poll(_ *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.splits = slices.DeleteFunc(r.splits, func(id sdk.SplitID) bool {
		if !r.ending[id] {
			return false
		}
		out.FinishSplit(split{id})
		r.w.ref.end(id, r.t.id)
		return true
	})
	return sdk.NothingAvailable, nil
}

func (r *modelReader) Snapshot(id sdk.CheckpointID) ([]split, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.ref.snapshotReader(id, r.t.id)
	out := make([]split, len(r.splits))
	for i, s := range r.splits {
		out[i].ID = s
	}
	return out, nil
}

// modelEnumerator has a list of what is unassigned, which is its state.
type modelEnumerator struct {
	w    *World
	ctx  sdk.EnumeratorContext[split]
	list []sdk.SplitID
	todo []func(*modelEnumerator) // to be done on the coordinator's loop
}

var (
	_ sdk.FinishedHandler[split] = (*modelEnumerator)(nil)
	_ sdk.NoMoreSplitsHandler    = (*modelReader)(nil)
)

func (e *modelEnumerator) Start() error { return nil }
func (e *modelEnumerator) Close() error { return nil }

func (e *modelEnumerator) drop(gone ...sdk.SplitID) {
	e.list = slices.DeleteFunc(e.list, func(id sdk.SplitID) bool { return slices.Contains(gone, id) })
}

func (e *modelEnumerator) AddReader(in sdk.ReaderInfo) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.drop(in.Splits...)
	e.drop(in.Finished...)
	return nil
}

func (e *modelEnumerator) ReturnSplits(splits []split) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	for _, id := range ids(splits) {
		if e.w.reconciled {
			e.w.ref.giveBack(id)
		}
		e.list = append(e.list, id)
	}
	return nil
}

func (e *modelEnumerator) SplitsFinished(splits []split) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.drop(ids(splits)...)
	return nil
}

func (e *modelEnumerator) Snapshot(id sdk.CheckpointID) (sdk.VersionedBytes, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if late := e.w.onCut; late != nil {
		e.w.onCut = nil
		late(e)
	}
	e.w.ref.checkEnumerator("a cut", e.list)
	e.w.ref.snapshot(id)
	names := make([]string, len(e.list))
	for i, s := range e.list {
		names[i] = string(s)
	}
	return sdk.VersionedBytes{Version: 1, Data: []byte(strings.Join(names, " "))}, nil
}

// HandleSplitRequest is how the test gets onto the loop.
func (e *modelEnumerator) HandleSplitRequest(sdk.ReaderID) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.reconcile() // requests are served when every reader is known
	for _, f := range e.todo {
		f(e)
	}
	e.todo = nil
	return nil
}

// assign sends the first n unassigned splits to a reader, as far as the engine takes them. The caller holds the lock.
func (e *modelEnumerator) assign(to sdk.ReaderID, n int) {
	n = min(n, len(e.list))
	batch := make([]split, n)
	for i := range batch {
		batch[i].ID = e.list[i]
	}
	// What is sent may be applied before Assign returns, but the reader needs the world's lock for that.
	switch err := e.ctx.Assign(to, batch); {
	case err == nil:
		for _, s := range batch {
			e.w.ref.dispatch(s.ID, to)
		}
		e.list = slices.Delete(e.list, 0, n)
	case !errors.Is(err, sdk.ErrBackpressure) && !slices.Contains(e.ctx.Readers(), to): // it has not registered
	case !errors.Is(err, sdk.ErrBackpressure):
		e.w.ref.wrong("assign %v to %d: %v", ids(batch), to, err)
	}
}
