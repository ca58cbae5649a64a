package stdout

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
)

// Format is how a record is printed.
type Format string

// Formats.
const (
	JSONLines Format = "jsonl" // one JSON object a line, see package jsonl
	Raw       Format = "raw"   // the value's bytes and a newline; a null value is an empty line
)

// Sink prints to one writer. Make it with [New].
type Sink struct {
	format Format
	out    io.Writer
	// turn holds one token: whoever has it may write to out. A channel and not a lock, as a pipe that nobody reads blocks for long
	// and waiting must end with the context.
	turn chan struct{}
}

var _ sdk.Sink = (*Sink)(nil)

// New returns a sink that prints to out, os.Stdout when nil. format is JSONLines when empty.
func New(out io.Writer, format Format) *Sink {
	if out == nil {
		out = os.Stdout
	}
	if format == "" {
		format = JSONLines
	}
	return &Sink{format: format, out: out, turn: make(chan struct{}, 1)}
}

// Name implements [sdk.Sink].
func (*Sink) Name() string { return "stdout" }

// NewWriter implements [sdk.Sink].
func (s *Sink) NewWriter(sdk.WriterContext) (sdk.Writer, error) {
	if s.format != JSONLines && s.format != Raw {
		return nil, sdk.Fatalf("stdout sink: format %q is not known (jsonl, raw)", s.format)
	}
	return &writer{sink: s}, nil
}

type writer struct {
	sink    *Sink
	encoder jsonl.Encoder
	buf     []byte
}

// flushBytes bounds the memory of a batch in print: a larger one goes out in several pieces of whole records.
const flushBytes = 256 << 10

func (w *writer) Open(context.Context) error { return nil }

func (w *writer) Write(ctx context.Context, batch *sdk.Batch) error {
	w.buf = w.buf[:0]
	for rec := range batch.All() {
		if w.sink.format == Raw {
			w.buf = append(append(w.buf, rec.Value...), '\n')
		} else {
			w.buf = w.encoder.Append(w.buf, rec)
		}
		if len(w.buf) >= flushBytes {
			if err := w.print(ctx); err != nil {
				return err
			}
		}
	}
	return w.print(ctx)
}

func (w *writer) print(ctx context.Context) error {
	if len(w.buf) == 0 {
		return nil
	}
	select {
	case w.sink.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.sink.turn }()
	_, err := w.sink.out.Write(w.buf)
	w.buf = w.buf[:0]
	if err != nil {
		// A closed pipe stays closed, and part of a line may be out: a restart cures nothing.
		return sdk.Fatal(fmt.Errorf("stdout sink: %w", err))
	}
	return nil
}

func (w *writer) Flush(context.Context) error { return nil }

func (w *writer) Close(context.Context) error {
	w.buf = nil
	return nil
}
