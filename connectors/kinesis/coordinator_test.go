package kinesis

import (
	"context"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// coordinator is what the enumerator sees of the engine.
type coordinator struct{ w *world }

var _ sdk.EnumeratorContext[Split] = coordinator{}

func (w *world) post(f func()) { w.posts <- f }

func (c coordinator) Parallelism() int             { return c.w.readers }
func (c coordinator) SplitCodec() sdk.Codec[Split] { return Codec{} }
func (c coordinator) Logger() *slog.Logger         { return slog.New(slog.NewTextHandler(c.w.log, nil)) }
func (c coordinator) Metrics() sdk.Metrics         { return c.w.metrics }
func (c coordinator) NoMoreSplits(r sdk.ReaderID) error {
	c.w.noMore++
	return c.w.tasks[r].r.(sdk.NoMoreSplitsHandler).NoMoreSplits()
}
func (c coordinator) SendEvent(sdk.ReaderID, sdk.Event) bool { return false }
func (c coordinator) RequestCheckpoint() bool {
	if c.w.never {
		return false
	}
	c.w.wanted = true
	return true
}

func (c coordinator) Readers() (ids []sdk.ReaderID) {
	for id := range c.w.readers {
		ids = append(ids, sdk.ReaderID(id))
	}
	return ids
}

func (c coordinator) Assign(r sdk.ReaderID, splits []Split) error {
	c.w.add(c.w.tasks[r], throughCodec(c.w.t, splits))
	return nil
}

func (c coordinator) Schedule(key string, delay time.Duration, task func()) {
	if old := c.w.timers[key]; old != nil {
		old.Stop()
	}
	posts := c.w.posts
	c.w.timers[key] = time.AfterFunc(delay, func() { posts <- task })
}

func (c coordinator) Cancel(key string) {
	if timer := c.w.timers[key]; timer != nil {
		timer.Stop()
	}
	if cancel := c.w.calls[key]; cancel != nil {
		cancel()
		delete(c.w.calls, key)
	}
}

func (c coordinator) Call(key string, work func(context.Context) (any, error), done func(any, error), o sdk.CallOptions) {
	ctx, cancel := context.WithCancel(context.Background())
	if o.Timeout > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), o.Timeout)
	}
	if o.Overlap == sdk.SkipIfRunning && c.w.calls[key] != nil {
		cancel()
		return
	}
	c.w.calls[key] = cancel
	posts := c.w.posts
	go func() {
		value, err := work(ctx)
		over := ctx.Err() != nil && o.Timeout > 0 && err == nil
		cancel()
		if over {
			return
		}
		posts <- func() {
			delete(c.w.calls, key)
			if err != nil && o.OnFailure == sdk.FailCoordinator {
				c.w.failed = err
				return
			}
			done(value, err)
		}
	}()
}

// logbook keeps what was logged.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// instruments keeps what was measured.
type instruments struct {
	mu     sync.Mutex
	values map[string]*float64 // a nil value is an absent one
}

func newInstruments() *instruments { return &instruments{values: make(map[string]*float64)} }

type instrument struct {
	in   *instruments
	name string
}

func (in *instruments) Counter(name, _, _ string) sdk.Counter { return instrument{in, name} }
func (in *instruments) Gauge(name, _, _ string) sdk.Gauge     { return instrument{in, name} }

func (in *instruments) get(name string) (float64, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if v := in.values[name]; v != nil {
		return *v, true
	}
	return 0, false
}

func (i instrument) Set(v float64) {
	i.in.mu.Lock()
	defer i.in.mu.Unlock()
	i.in.values[i.name] = &v
}

func (i instrument) Unset() {
	i.in.mu.Lock()
	defer i.in.mu.Unlock()
	delete(i.in.values, i.name)
}

func (i instrument) Add(n int64) {
	v, _ := i.in.get(i.name)
	i.Set(v + float64(n))
}

// shardsOf makes open shards of ranges of hash keys.
func shardsOf(ranges []lineage.HashRange) []types.Shard {
	shards := make([]types.Shard, len(ranges))
	for i, r := range ranges {
		start, end := new(big.Int).SetBytes(r.Start[:]).String(), new(big.Int).SetBytes(r.End[:]).String()
		shards[i] = types.Shard{HashKeyRange: &types.HashKeyRange{StartingHashKey: &start, EndingHashKey: &end}}
	}
	return shards
}
