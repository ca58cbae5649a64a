package stdout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/connectors/stdout"
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

func writer(t *testing.T, s *stdout.Sink) sdk.Writer {
	t.Helper()
	w, err := s.NewWriter(writerContext{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestPrintsEachBatch(t *testing.T) {
	for format, want := range map[stdout.Format]string{
		"":         `{"topic":"t","partition":0,"offset":0,"timestamp":null,"key":null,"value":"v","headers":[]}` + "\n",
		stdout.Raw: "v\n",
	} {
		var out bytes.Buffer
		w := writer(t, stdout.New(&out, format))
		var b sdk.Batch
		b.Append(&sdk.Record{Topic: "t", Value: []byte("v")})
		for range 2 {
			if err := w.Write(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); got != want+want {
			t.Errorf("%q: got %q", format, got)
		}
	}
}

// Lines of several tasks stay whole, whatever the writer does with one call.
func TestTasksDoNotMix(t *testing.T) {
	var out bytes.Buffer // not safe for concurrent use: the race detector watches
	s := stdout.New(&out, "")
	var wg sync.WaitGroup
	for task := range 4 {
		w := writer(t, s)
		wg.Go(func() {
			var b sdk.Batch
			for i := range 50 {
				b.Reset()
				b.Append(&sdk.Record{Topic: "t", Partition: int32(task), Offset: int64(i), Value: bytes.Repeat([]byte("x"), 7000)})
				if err := w.Write(t.Context(), &b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range bytes.Lines(out.Bytes()) {
		if _, err := jsonl.Decode(line); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 200 {
		t.Errorf("%d lines", n)
	}
}

// A reader that takes nothing blocks one task; the others still end with their context.
func TestStuckPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pipe := io.Pipe()
		s := stdout.New(pipe, stdout.Raw)
		var b sdk.Batch
		b.Append(&sdk.Record{Value: []byte("v")})
		first, second := writer(t, s), writer(t, s)
		done := make(chan error, 1)
		go func() { done <- first.Write(t.Context(), &b) }()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(sdk.ErrClosed)
		if err := second.Write(ctx, &b); !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("got %v", err)
		}
		_ = r.Close()
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) || !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnknownFormat(t *testing.T) {
	if _, err := stdout.New(nil, "csv").NewWriter(writerContext{}); !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("got %v", err)
	}
}
