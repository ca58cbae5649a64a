package realtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

// coordinator is what an enumerator needs of an engine with one reader. Its loop is whoever takes from queue: the test.
type coordinator struct {
	t      testing.TB
	ctx    context.Context // the life of the test; calls run beside the loop
	source *kafka.Source
	e      sdk.Enumerator[kafka.Split]
	queue  chan func()
	timers map[string]*time.Timer
	newest sdk.CheckpointID

	assigned []kafka.Split // and not taken by the reader
	noMore   bool
	err      error
}

var _ sdk.EnumeratorContext[kafka.Split] = (*coordinator)(nil)

// coordinate starts an enumerator, to which reader 0 has registered.
func coordinate(t testing.TB, source *kafka.Source, state *sdk.VersionedBytes) *coordinator {
	t.Helper()
	c := &coordinator{t: t, ctx: t.Context(), source: source, queue: make(chan func(), 64), timers: make(map[string]*time.Timer)}
	e, err := source.NewEnumerator(c, state)
	if err != nil {
		t.Fatal(err)
	}
	c.e = e
	t.Cleanup(func() {
		for _, timer := range c.timers {
			timer.Stop()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if err := e.AddReader(sdk.ReaderInfo{ID: 0}); err != nil {
		t.Fatal(err)
	}
	return c
}

// state returns what a checkpoint would hold.
func (c *coordinator) state() *sdk.VersionedBytes {
	c.t.Helper()
	c.newest++
	state, err := c.e.Snapshot(c.newest)
	if err != nil {
		c.t.Fatal(err)
	}
	return &state
}

// post queues a task for the loop, unless the test is over.
func (c *coordinator) post(task func()) {
	select {
	case c.queue <- task:
	case <-c.ctx.Done():
	}
}

func (c *coordinator) Call(_ string, work func(context.Context) (any, error), done func(any, error), o sdk.CallOptions) {
	go func() {
		timeout := o.Timeout
		if timeout == 0 {
			timeout = time.Minute
		}
		ctx, cancel := context.WithTimeout(c.ctx, timeout)
		defer cancel()
		value, err := work(ctx)
		c.post(func() {
			if err != nil && o.OnFailure == sdk.FailCoordinator {
				c.err = err
				return
			}
			done(value, err)
		})
	}()
}

func (c *coordinator) Schedule(key string, delay time.Duration, task func()) {
	c.Cancel(key)
	c.timers[key] = time.AfterFunc(delay, func() { c.post(task) })
}

func (c *coordinator) Cancel(key string) {
	if timer := c.timers[key]; timer != nil {
		timer.Stop()
	}
}

func (c *coordinator) RequestCheckpoint() bool {
	go c.post(func() {
		c.newest++
		if _, err := c.e.Snapshot(c.newest); err != nil {
			c.err = err
			return
		}
		if l, ok := c.e.(sdk.CheckpointListener); ok && c.err == nil {
			c.err = l.CheckpointComplete(c.newest)
		}
	})
	return true
}

func (c *coordinator) Assign(_ sdk.ReaderID, splits []kafka.Split) error {
	c.assigned = append(c.assigned, splits...)
	return nil
}

func (c *coordinator) NoMoreSplits(sdk.ReaderID) error {
	c.noMore = true
	return nil
}

func (c *coordinator) Parallelism() int                       { return 1 }
func (c *coordinator) Readers() []sdk.ReaderID                { return []sdk.ReaderID{0} }
func (c *coordinator) SendEvent(sdk.ReaderID, sdk.Event) bool { return true }
func (c *coordinator) SplitCodec() sdk.Codec[kafka.Split]     { return c.source.SplitCodec() }
func (c *coordinator) Logger() *slog.Logger                   { return slog.New(slog.DiscardHandler) }
func (c *coordinator) Metrics() sdk.Metrics                   { return sdk.DiscardMetrics }
