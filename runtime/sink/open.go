package sink

import (
	"context"
	"log/slog"

	"github.com/penstock-dev/penstock/sdk"
)

// open makes, opens and restores the writer.
func (l *Loop) open(ctx context.Context) error {
	err := l.call("open", nil, func() (err error) {
		if l.writer, err = l.cfg.Sink.NewWriter(&writerContext{l}); err != nil {
			return err
		}
		return l.writer.Open(ctx)
	})
	if err != nil {
		return err
	}
	l.committer, _ = l.writer.(sdk.Committer)
	if l.committer == nil {
		return nil
	}
	r := l.cfg.Restore
	if r.Whole {
		return l.call("restore", nil, func() error { return l.committer.Restore(ctx, r.All) })
	}
	for _, p := range r.Commit {
		if err := l.commitOne(ctx, p); err != nil {
			return err
		}
	}
	if d, ok := l.writer.(sdk.Discarder); ok {
		for _, p := range r.Discard {
			if err := l.call("discard", nil, func() error { return d.Discard(ctx, p.Data) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// close lets the writer end in an orderly way although its context is cancelled.
func (l *Loop) close(ctx context.Context) {
	if l.writer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.CloseTimeout)
	defer cancel()
	if err := l.call("close", nil, func() error { return l.writer.Close(ctx) }); err != nil && !l.fenced.Load() {
		l.cfg.Logger.Warn("closing the writer failed", "error", err)
	}
}

// writerContext is what the writer sees of the task.
type writerContext struct{ l *Loop }

func (c *writerContext) Job() string                { return c.l.cfg.Job }
func (c *writerContext) Task() int                  { return c.l.cfg.Task }
func (c *writerContext) Parallelism() int           { return c.l.cfg.Parallelism }
func (c *writerContext) Attempt() int64             { return int64(c.l.cfg.Attempt) }
func (c *writerContext) Restored() sdk.CheckpointID { return c.l.cfg.Restored }
func (c *writerContext) Logger() *slog.Logger       { return c.l.cfg.Logger }
func (c *writerContext) Metrics() sdk.Metrics       { return c.l.cfg.Metrics }
