package file

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
)

// writer is the writer of one sink task. Everything in it belongs to the sink loop.
type writer struct {
	sink    Sink
	job     string
	task    int
	attempt int64
	// restored is the checkpoint that the run goes on from, 0 when it starts anew.
	restored sdk.CheckpointID
	log      *slog.Logger
	now      func() time.Time
	open     func(path string) (folder, error)

	dir     folder
	encoder jsonl.Encoder
	packer  packer // reused from file to file
	buf     []byte // encoded records not yet handed to part

	part    *part    // open, nil when nothing was written since the last one ended
	ended   []string // hidden names of complete files since the last Prepare
	created int      // numbers hidden names
	broken  error    // the first failed write: what was written since the last Prepare may be torn
}

var (
	_ sdk.Writer    = (*writer)(nil)
	_ sdk.Committer = (*writer)(nil)
	_ sdk.Discarder = (*writer)(nil)
)

const (
	// flushBytes of encoded records go to the file at once.
	flushBytes = 128 << 10
	// maxFiles bounds the files of one task and checkpoint: the last one takes the rest, whatever the rolling options say.
	maxFiles = 10_000
)

func newWriter(s Sink, ctx sdk.WriterContext, open func(string) (folder, error), now func() time.Time) *writer {
	return &writer{sink: s, job: ctx.Job(), task: ctx.Task(), attempt: ctx.Attempt(), restored: ctx.Restored(), log: ctx.Logger(), now: now, open: open}
}

// Open implements [sdk.Writer].
func (w *writer) Open(context.Context) error {
	dir, err := w.open(w.sink.Path)
	if err != nil {
		return sdk.Fatal(failure("open directory", w.sink.Path, err))
	}
	if err := dir.Lock(w.job); err != nil {
		return sdk.Fatal(errors.Join(failure("write to", w.sink.Path, err), dir.Close()))
	}
	w.dir = dir
	return nil
}

// Write implements [sdk.Writer].
func (w *writer) Write(ctx context.Context, batch *sdk.Batch) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.broken == nil {
		w.broken = w.write(batch)
	}
	return w.broken
}

func (w *writer) write(batch *sdk.Batch) error {
	if w.part != nil && w.sink.RollInterval > 0 && w.now().Sub(w.part.since) >= w.sink.RollInterval {
		if err := w.roll(); err != nil {
			return err
		}
	}
	for rec := range batch.All() {
		if w.part == nil {
			if err := w.start(); err != nil {
				return err
			}
		}
		before := len(w.buf)
		w.buf = w.append(w.buf, rec)
		w.part.encoded += int64(len(w.buf) - before)
		if len(w.buf) >= flushBytes {
			if err := w.drain(); err != nil {
				return err
			}
		}
		if w.sink.RollBytes > 0 && w.part.encoded >= w.sink.RollBytes {
			if err := w.roll(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) append(dst []byte, rec *sdk.Record) []byte {
	if w.sink.Format == Raw {
		return append(append(dst, rec.Value...), w.sink.Separator...)
	}
	return w.encoder.Append(dst, rec)
}

// start makes the next hidden file. Its name is new in this job, so an existing one means that two writers believe to be
// the same attempt.
func (w *writer) start() error {
	name := partName(w.job, w.task, w.attempt, w.created)
	h, err := w.dir.Create(name)
	if err != nil {
		return w.fail("create", name, err)
	}
	w.created++
	if w.packer == nil {
		if w.packer, err = newPacker(w.sink.Compression); err != nil {
			return errors.Join(w.fail("create", name, err), h.Close())
		}
	}
	w.packer.Reset(h)
	w.part = &part{name: name, handle: h, since: w.now()}
	return nil
}

// drain hands the buffer to the file.
func (w *writer) drain() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.packer.Write(w.buf)
	w.buf = w.buf[:0]
	return w.fail("write", w.part.name, err)
}

// roll ends the file unless the checkpoint has as many as it may.
func (w *writer) roll() error {
	if len(w.ended)+1 >= maxFiles {
		return nil
	}
	return w.end()
}

// end completes the open file and makes its bytes durable. Its name is made durable by Prepare.
func (w *writer) end() error {
	if w.part == nil {
		return nil
	}
	if err := w.drain(); err != nil {
		return err
	}
	p := w.part
	w.part = nil
	w.ended = append(w.ended, p.name)
	err := w.packer.Close()
	if err == nil {
		err = p.handle.Sync()
	}
	return w.fail("write", p.name, errors.Join(err, p.handle.Close()))
}

// Flush implements [sdk.Writer]. The engine does not call it, as the writer is a [sdk.Committer].
func (w *writer) Flush(context.Context) error { return nil }

// Close implements [sdk.Writer]: it removes what was written since the last Prepare. Prepared files stay, hidden, for the
// commit or restore to come.
func (w *writer) Close(context.Context) error {
	if w.dir == nil {
		return nil
	}
	var all error
	if w.part != nil {
		all = w.part.handle.Close()
		w.ended = append(w.ended, w.part.name)
	}
	for _, name := range w.ended {
		all = errors.Join(all, w.remove(name))
	}
	all = errors.Join(all, w.dir.Close())
	w.part, w.ended, w.buf, w.dir = nil, nil, nil, nil
	return all
}

// remove removes a hidden file; one that is gone already is fine.
func (w *writer) remove(name string) error {
	err := w.dir.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return w.fail("remove", name, err)
}

// fail makes an [Error] that names the whole path; nil stays nil.
func (w *writer) fail(op, name string, err error) error { return failure(op, w.path(name), err) }

func (w *writer) path(name string) string { return filepath.Join(w.sink.Path, name) }
