package blackhole_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/sdk"
)

type writerContext struct{}

func (writerContext) Job() string                { return "j" }
func (writerContext) Task() int                  { return 0 }
func (writerContext) Parallelism() int           { return 1 }
func (writerContext) Attempt() int64             { return 1 }
func (writerContext) Restored() sdk.CheckpointID { return 0 }
func (writerContext) Logger() *slog.Logger       { return slog.New(slog.DiscardHandler) }
func (writerContext) Metrics() sdk.Metrics       { return sdk.DiscardMetrics }

func writer(t *testing.T, s *blackhole.Sink) sdk.Writer {
	t.Helper()
	w, err := s.NewWriter(writerContext{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func offsets(os ...int64) *sdk.Batch {
	var b sdk.Batch
	for _, o := range os {
		b.Append(&sdk.Record{Topic: "t", Offset: o, Key: []byte("k"), Value: []byte("val")})
	}
	return &b
}

func TestCounts(t *testing.T) {
	s := blackhole.New("")
	for range 3 {
		if err := writer(t, s).Write(t.Context(), offsets(1, 1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Totals(), (blackhole.Totals{Records: 9, Bytes: 36}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		check   blackhole.Check
		offsets []int64
		ok      bool
	}{
		{blackhole.Order, []int64{1, 2, 9}, true},
		{blackhole.Order, []int64{1, 2, 2}, false},
		{blackhole.Order, []int64{5, 4}, false},
		{blackhole.Continuity, []int64{7, 8, 9}, true},
		{blackhole.Continuity, []int64{7, 9}, false},
	} {
		w := writer(t, blackhole.New(c.check))
		var err error
		for _, o := range c.offsets {
			err = errors.Join(err, w.Write(t.Context(), offsets(o)))
		}
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, sdk.ErrFatal)) {
			t.Errorf("%s %v: %v", c.check, c.offsets, err)
		}
	}
}

func TestSplitsAreToldApart(t *testing.T) {
	w := writer(t, blackhole.New(blackhole.Order))
	var b sdk.Batch
	b.Append(&sdk.Record{Split: "a", Offset: 5})
	b.Append(&sdk.Record{Split: "b", Offset: 5})
	b.Append(&sdk.Record{Topic: "t", Partition: 0, Offset: 5})
	b.Append(&sdk.Record{Topic: "t", Partition: 1, Offset: 5})
	if err := w.Write(t.Context(), &b); err != nil {
		t.Error(err)
	}
}

func TestUnknownCheckAndCancel(t *testing.T) {
	if _, err := blackhole.New("x").NewWriter(writerContext{}); !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(sdk.ErrClosed)
	if err := writer(t, blackhole.New("")).Write(ctx, offsets(1)); !errors.Is(err, sdk.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestNoAllocations(t *testing.T) {
	for _, check := range []blackhole.Check{blackhole.Off, blackhole.Order} {
		w, b := writer(t, blackhole.New(check)), offsets(1)
		next := int64(1)
		ctx := t.Context()
		if n := testing.AllocsPerRun(100, func() {
			next++
			b.Reset()
			b.Append(&sdk.Record{Topic: "t", Offset: next})
			if err := w.Write(ctx, b); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a batch", check, n)
		}
	}
}
