package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

type split struct {
	ID  sdk.SplitID
	Pos int
}

func (s split) SplitID() sdk.SplitID { return s.ID }
func (s split) Describe() []sdk.Attribute {
	return []sdk.Attribute{{Name: "pos", Value: fmt.Sprint(s.Pos)}}
}

// otherSplit belongs to no source here.
type otherSplit struct{}

func (otherSplit) SplitID() sdk.SplitID { return "other" }

var (
	codec    = sdk.JSONCodec[split]{Current: 2}
	errUser  = errors.New("user code failed")
	encodedA = protocol.Split{ID: "a", Data: sdk.VersionedBytes{Version: 2, Data: []byte(`{"ID":"a","Pos":3}`)}}
)

// plain has none of the optional abilities. Every method panics with an error, to see what the border makes of it.
type plain struct{}

func (plain) Open(context.Context) error                         { panic(errUser) }
func (plain) Poll(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) { panic(errUser) }
func (plain) AddSplits([]split) error                            { panic(errUser) }
func (plain) Snapshot(sdk.CheckpointID) ([]split, error)         { panic(errUser) }
func (plain) Wakeup()                                            { panic(errUser) }
func (plain) Close() error                                       { panic(errUser) }
func (plain) Start() error                                       { panic(errUser) }
func (plain) AddReader(sdk.ReaderInfo) error                     { panic(errUser) }
func (plain) ReturnSplits([]split) error                         { panic(errUser) }

type plainEnumerator struct{ plain }

func (plainEnumerator) Snapshot(sdk.CheckpointID) (sdk.VersionedBytes, error) { panic(errUser) }

// able has all of them.
type able struct{ plain }

func (able) NoMoreSplits() error                              { panic(errUser) }
func (able) HandleEvent(sdk.Event) error                      { panic(errUser) }
func (able) PauseOrResume([]sdk.SplitID, []sdk.SplitID) error { panic(errUser) }
func (able) CheckpointComplete(sdk.CheckpointID) error        { panic(errUser) }
func (able) CheckpointAborted(sdk.CheckpointID) error         { panic(errUser) }

type ableEnumerator struct{ plainEnumerator }

func (ableEnumerator) HandleSplitRequest(sdk.ReaderID) error           { panic(errUser) }
func (ableEnumerator) HandleReaderEvent(sdk.ReaderID, sdk.Event) error { panic(errUser) }
func (ableEnumerator) SplitsFinished([]split) error                    { panic(errUser) }
func (ableEnumerator) CheckpointComplete(sdk.CheckpointID) error       { panic(errUser) }
func (ableEnumerator) CheckpointAborted(sdk.CheckpointID) error        { panic(errUser) }

// source makes what its fields say.
type source struct {
	reader     sdk.Reader[split]
	enumerator func(ctx sdk.EnumeratorContext[split]) (sdk.Enumerator[split], error)
	err        error
}

func (source) Capability() sdk.Capability   { return sdk.Capability{Connector: "test"} }
func (source) SplitCodec() sdk.Codec[split] { return codec }

func (s source) NewReader(sdk.ReaderContext) (sdk.Reader[split], error) { return s.reader, s.err }

func (s source) NewEnumerator(ctx sdk.EnumeratorContext[split], _ *sdk.VersionedBytes) (sdk.Enumerator[split], error) {
	if s.enumerator == nil {
		panic(errUser)
	}
	return s.enumerator(ctx)
}

func (source) Probe(context.Context) error { panic(errUser) }

func newReader(t *testing.T, r sdk.Reader[split]) Reader {
	t.Helper()
	got, err := Erase(source{reader: r}).NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func newEnumerator(t *testing.T, e sdk.Enumerator[split]) Enumerator {
	t.Helper()
	got, err := Erase(source{enumerator: func(sdk.EnumeratorContext[split]) (sdk.Enumerator[split], error) { return e, nil }}).NewEnumerator(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// isPanic reports that err is a panic of user code at the named place, from which the panic's value can still be told.
func isPanic(err error, where string) bool {
	p, ok := errors.AsType[*PanicError](err)
	return ok && p.Where == where && errors.Is(err, errUser) && len(p.Stack) > 0 && strings.HasPrefix(p.At, "connector/connector_test.go:") && !strings.Contains(err.Error(), "goroutine")
}

func TestEveryCallOfAReaderIsGuarded(t *testing.T) {
	t.Parallel()
	r := newReader(t, able{})
	calls := map[string]func() error{
		"Open":               func() error { return r.Open(t.Context()) },
		"AddSplits":          func() error { return r.AddSplits([]protocol.Split{encodedA}) },
		"Snapshot":           func() error { _, err := r.Snapshot(1); return err },
		"Close":              r.Close,
		"NoMoreSplits":       r.NoMoreSplits,
		"HandleEvent":        func() error { return r.HandleEvent(sdk.Event{}) },
		"PauseOrResume":      func() error { return r.PauseOrResume(nil, nil) },
		"CheckpointComplete": func() error { return r.CheckpointComplete(1) },
		"CheckpointAborted":  func() error { return r.CheckpointAborted(1) },
	}
	for where, call := range calls {
		if err := call(); !isPanic(err, where) {
			t.Errorf("%s: %v", where, err)
		}
	}
	r.Wakeup() // runs on the watchdog's goroutine, which must survive it
}

func TestEveryCallOfAnEnumeratorIsGuarded(t *testing.T) {
	t.Parallel()
	e := newEnumerator(t, ableEnumerator{})
	calls := map[string]func() error{
		"Start":              e.Start,
		"AddReader":          func() error { return e.AddReader(sdk.ReaderInfo{}) },
		"ReturnSplits":       func() error { return e.ReturnSplits([]protocol.Split{encodedA}) },
		"Snapshot":           func() error { _, err := e.Snapshot(1); return err },
		"Close":              e.Close,
		"HandleSplitRequest": func() error { return e.HandleSplitRequest(1) },
		"HandleReaderEvent":  func() error { return e.HandleReaderEvent(1, sdk.Event{}) },
		"SplitsFinished":     func() error { return e.SplitsFinished([]protocol.Split{encodedA}) },
		"CheckpointComplete": func() error { return e.CheckpointComplete(1) },
		"CheckpointAborted":  func() error { return e.CheckpointAborted(1) },
	}
	for where, call := range calls {
		if err := call(); !isPanic(err, where) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// FLINK-24303: a panic while the enumerator is made is a failure like any other.
func TestFactoriesAreGuarded(t *testing.T) {
	t.Parallel()
	s := Erase(source{err: errUser})
	if _, err := s.NewEnumerator(nil, nil); !isPanic(err, "NewEnumerator") {
		t.Errorf("NewEnumerator: %v", err)
	}
	if r, err := s.NewReader(nil); !errors.Is(err, errUser) || r != nil {
		t.Errorf("NewReader: %v, %v", r, err)
	}
	if err := s.Probe(t.Context()); !isPanic(err, "Probe") {
		t.Errorf("Probe: %v", err)
	}
}

// An ability that the connector lacks is a no-op, except where silence would lose something.
func TestMissingAbilities(t *testing.T) {
	t.Parallel()
	r := newReader(t, plain{})
	for _, err := range []error{r.NoMoreSplits(), r.CheckpointComplete(1), r.CheckpointAborted(1)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.HandleEvent(sdk.Event{Kind: "hello"}); err == nil || !strings.Contains(err.Error(), "hello") {
		t.Errorf("an event that nobody handles: %v", err)
	}
	if err := r.PauseOrResume(nil, nil); !errors.Is(err, ErrNoPauser) {
		t.Errorf("a pause that nobody serves: %v", err)
	}
	e := newEnumerator(t, plainEnumerator{})
	for _, err := range []error{
		e.HandleSplitRequest(1), e.HandleReaderEvent(1, sdk.Event{}), e.SplitsFinished([]protocol.Split{encodedA}),
		e.CheckpointComplete(1), e.CheckpointAborted(1),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// collecting is a reader that keeps what it is given and returns it.
type collecting struct {
	able
	splits []split
}

func (c *collecting) AddSplits(s []split) error                  { c.splits = append(c.splits, s...); return nil }
func (c *collecting) Snapshot(sdk.CheckpointID) ([]split, error) { return c.splits, nil }

func TestSplitsCrossTheBorder(t *testing.T) {
	t.Parallel()
	c := &collecting{}
	r := newReader(t, c)
	old := protocol.Split{ID: "b", Data: sdk.VersionedBytes{Version: 1, Data: []byte(`{"ID":"b","Pos":9}`)}}
	if err := r.AddSplits([]protocol.Split{encodedA, old}); err != nil {
		t.Fatal(err)
	}
	if want := []split{{"a", 3}, {"b", 9}}; !slices.Equal(c.splits, want) {
		t.Errorf("the reader was given %v, want %v", c.splits, want)
	}
	got, err := r.Snapshot(1)
	if err != nil || len(got) != 2 || got[1].ID != "b" || got[1].Data.Version != 2 || string(got[0].Data.Data) != string(encodedA.Data.Data) {
		t.Errorf("the snapshot is %v, %v", got, err)
	}
	if got, err := r.Encode(split{"a", 3}); err != nil || string(got.Data.Data) != string(encodedA.Data.Data) {
		t.Errorf("Encode: %v, %v", got, err)
	}
}

// What cannot be decoded will not be the next time either: no restart helps, and the error names the split.
func TestUndecodableSplitsAreFatal(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]protocol.Split{
		"corrupt":         {ID: "a", Data: sdk.VersionedBytes{Version: 2, Data: []byte(`{"ID":`)}},
		"unknown version": {ID: "a", Data: sdk.VersionedBytes{Version: 3, Data: encodedA.Data.Data}},
		"another split":   {ID: "z", Data: encodedA.Data},
	} {
		r, e := newReader(t, &collecting{}), newEnumerator(t, ableEnumerator{})
		for _, err := range []error{
			r.AddSplits([]protocol.Split{bad}), e.ReturnSplits([]protocol.Split{bad}), e.SplitsFinished([]protocol.Split{bad}),
		} {
			if !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), string(bad.ID)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestSplitIDsAreChecked(t *testing.T) {
	t.Parallel()
	for _, id := range []sdk.SplitID{"", sdk.SplitID(strings.Repeat("x", sdk.MaxSplitIDBytes+1))} {
		r := newReader(t, &collecting{splits: []split{{ID: id}}})
		if _, err := r.Snapshot(1); !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	r := newReader(t, &collecting{})
	if _, err := r.Encode(otherSplit{}); !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("a split of another type: %v", err)
	}
}

// assigning is an untyped context that keeps what was assigned.
type assigning struct {
	EnumeratorContext
	got []protocol.Split
}

func (a *assigning) Assign(_ sdk.ReaderID, s []protocol.Split) error {
	a.got = append(a.got, s...)
	return nil
}

func TestAssignmentsAreEncoded(t *testing.T) {
	t.Parallel()
	var ctx sdk.EnumeratorContext[split]
	a := &assigning{}
	_, err := Erase(source{enumerator: func(c sdk.EnumeratorContext[split]) (sdk.Enumerator[split], error) {
		ctx = c
		return ableEnumerator{}, nil
	}}).NewEnumerator(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ctx.Assign(1, []split{{"a", 3}}); err != nil || len(a.got) != 1 || string(a.got[0].Data.Data) != string(encodedA.Data.Data) {
		t.Errorf("assigned %v, %v", a.got, err)
	}
	if err := ctx.Assign(1, []split{{ID: "b"}, {}}); !errors.Is(err, sdk.ErrFatal) || len(a.got) != 1 {
		t.Errorf("half of a bad assignment went through: %v, %v", a.got, err)
	}
	if ctx.SplitCodec().Version() != 2 {
		t.Error("the context has another codec")
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := Erase(source{})
	if got, err := s.Describe(encodedA); err != nil || len(got) != 1 || got[0] != (sdk.Attribute{Name: "pos", Value: "3"}) {
		t.Errorf("described as %v, %v", got, err)
	}
	if _, err := s.Describe(protocol.Split{ID: "a", Data: sdk.VersionedBytes{Version: 2, Data: []byte("{")}}); !errors.Is(err, sdk.ErrCorrupt) {
		t.Errorf("corrupt: %v", err)
	}
	if s.Capability().Connector != "test" {
		t.Error("another capability")
	}
}

func TestGuardKeepsErrorsAndValues(t *testing.T) {
	t.Parallel()
	if err := Guard("f", func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Guard("f", func() error { return errUser }); !errors.Is(err, errUser) {
		t.Error(err)
	}
	err := Guard("f", func() error { panic("text") })
	if p, ok := errors.AsType[*PanicError](err); !ok || p.Value != "text" || p.Unwrap() != nil {
		t.Errorf("%v", err)
	}
}
