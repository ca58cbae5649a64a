package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// Keys of the scheduler.
const (
	keyDiscover = "kinesis-discover"
	keyResolve  = "kinesis-resolve"
	keyAssign   = "kinesis-assign"
	keyFail     = "kinesis-fail"
)

// discoveryTimeout bounds one look at the stream: a call for a thousand shards each.
const discoveryTimeout = 2 * time.Minute

// Pauses after looks that failed, and after one that missed a shard.
const (
	minRetry   = time.Second
	maxRetry   = time.Minute
	missedWait = 2 * time.Second
)

// failAfter is how many looks in a row may fail before the first one has worked, because until then the job does nothing.
const failAfter = 5

// enumerator drives the [lineage.Topology]: it looks at the stream on workers, hands what it finds to the topology on the coordinator loop,
// and does what that says. All methods belong to the coordinator loop.
type enumerator struct {
	ctx    sdk.EnumeratorContext[Split]
	source Source
	lazy   *lazy
	top    *lineage.Topology
	meters topologyMeters

	registered map[sdk.ReaderID]bool // in this epoch
	told       map[sdk.ReaderID]bool // no more splits, since it registered last
	looking    bool
	again      bool
	failures   int // looks in a row
	tries      int // resolutions in a row
	closed     bool
}

var (
	_ sdk.Enumerator[Split]      = (*enumerator)(nil)
	_ sdk.FinishedHandler[Split] = (*enumerator)(nil)
	_ sdk.CheckpointListener     = (*enumerator)(nil)
	_ sdk.EnumeratorEventHandler = (*enumerator)(nil)
)

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	e := &enumerator{
		ctx: ctx, source: s.withDefaults(), meters: newTopologyMeters(ctx.Metrics()),
		registered: make(map[sdk.ReaderID]bool), told: make(map[sdk.ReaderID]bool),
	}
	e.lazy = &lazy{source: e.source}
	config := e.source.topology(ctx.Parallelism())
	if state == nil {
		e.top = lineage.New(config)
		return e, nil
	}
	top, err := lineage.Decode(*state, config)
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w", err)
	}
	e.top = top
	return e, nil
}

// identity is what saved state depends on. Region and endpoint may change, and so may the start, which was made concrete long ago.
func (s *Source) identity() []sdk.Attribute {
	return []sdk.Attribute{{Name: "stream", Value: s.name()}, {Name: "stop", Value: s.Stop.String()}}
}

func (e *enumerator) bounded() bool { return !e.source.Stop.IsZero() }

// Start implements [sdk.Enumerator].
func (e *enumerator) Start() error {
	if err := e.problem(); err != nil {
		return err
	}
	if lost := e.top.Accepted(); len(lost) > 0 {
		e.lost(lost)
	}
	e.discover()
	e.resolve()
	return nil
}

// problem is the lineage error that stands, or nil.
func (e *enumerator) problem() error {
	err := e.top.Problem()
	if err == nil {
		return nil
	}
	return sdk.Fatalf("kinesis: stream %q: %w: set on_lost to continue to go on without their records, or start the job without its saved state (--restore none)",
		e.source.name(), err)
}

// AddReader implements [sdk.Enumerator].
func (e *enumerator) AddReader(reader sdk.ReaderInfo) error {
	if err := e.top.Registered(reader.ID, texts(reader.Splits), texts(reader.Finished)); err != nil {
		return fmt.Errorf("kinesis: %w", err)
	}
	e.registered[reader.ID] = true
	e.told[reader.ID] = false
	if len(reader.Finished) > 0 {
		e.ctx.RequestCheckpoint() // whose children wait for it
	}
	return e.distribute()
}

func texts(ids []sdk.SplitID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// ReturnSplits implements [sdk.Enumerator].
func (e *enumerator) ReturnSplits(splits []Split) error {
	for _, s := range splits {
		e.top.Recall(s.Created, s.Stop)
		if !e.top.Returned(s.Shard, s.Position, s.Hashes) {
			e.ctx.Logger().Warn("a shard was returned that a completed checkpoint holds as finished; it stays finished", "shard", s.Shard)
		}
	}
	return e.distribute()
}

// HandleReaderEvent implements [sdk.EnumeratorEventHandler]: a shard ended, and nothing but a checkpoint lets its children go.
func (e *enumerator) HandleReaderEvent(_ sdk.ReaderID, event sdk.Event) error {
	var told ended
	if event.Kind != eventEnded || json.Unmarshal(event.Data.Data, &told) != nil {
		return nil // of another build: events promise nothing
	}
	if !e.top.Ended(told.Shard, told.End.Children) {
		return nil
	}
	if !e.ctx.RequestCheckpoint() { // the job takes none: the reader's word is all there is
		return e.finished([]Split{{Shard: told.Shard, End: &told.End}})
	}
	if told.End.How == lineage.AtEnd && e.top.Childless(told.Shard) {
		e.trigger()
	}
	return nil
}

// SplitsFinished implements [sdk.FinishedHandler].
func (e *enumerator) SplitsFinished(splits []Split) error { return e.finished(splits) }

func (e *enumerator) finished(splits []Split) error {
	look := false
	for _, s := range splits {
		end := End{How: lineage.AtEnd}
		if s.End != nil {
			end = *s.End
		}
		e.top.Finished(s.Shard, end.How, end.Children)
		look = look || end.How == lineage.AtEnd && e.top.Childless(s.Shard)
		if end.How == lineage.AsLost {
			e.lost([]string{s.Shard})
		}
	}
	if look {
		e.trigger()
	}
	return e.distribute()
}

// CheckpointComplete implements [sdk.CheckpointListener].
func (e *enumerator) CheckpointComplete(id sdk.CheckpointID) error {
	e.top.Durable(id)
	e.want()
	return e.distribute()
}

// CheckpointAborted implements [sdk.CheckpointListener].
func (e *enumerator) CheckpointAborted(sdk.CheckpointID) error {
	if e.top.Settled() {
		e.ctx.RequestCheckpoint()
	}
	return nil
}

// want asks for the checkpoint that the settled first snapshot waits for.
func (e *enumerator) want() {
	if e.top.Uncontained() && !e.ctx.RequestCheckpoint() {
		e.top.Open()
	}
}

// Snapshot implements [sdk.Enumerator].
func (e *enumerator) Snapshot(id sdk.CheckpointID) (sdk.VersionedBytes, error) {
	state := e.top.Encode()
	e.top.Snapshotted(id)
	return state, nil
}

// Close implements [sdk.Enumerator]. It makes every answer that is still on its way stale.
func (e *enumerator) Close() error {
	e.closed = true
	e.top.Cancel()
	for _, key := range []string{keyDiscover, keyResolve, keyAssign} {
		e.ctx.Cancel(key)
	}
	e.lazy.close()
	return nil
}

// trigger looks at the stream now, or right after the look that is running.
func (e *enumerator) trigger() {
	if e.looking {
		e.again = true
		return
	}
	e.discover()
}

func (e *enumerator) discover() {
	if e.closed || e.looking {
		return
	}
	e.looking, e.again = true, false
	id, first := e.top.Begin(), !e.top.FirstDone()
	sdk.CallAsync(e.ctx, keyDiscover, func(ctx context.Context) (found, error) {
		v, err := e.lazy.get(ctx)
		if err != nil {
			return found{}, err
		}
		return v.look(ctx, first)
	}, func(f found, err error) { e.looked(id, f, err) }, sdk.CallOptions{Timeout: discoveryTimeout})
}

// looked is back on the loop with a complete list, or with what went wrong.
func (e *enumerator) looked(id lineage.ScanID, f found, err error) {
	if e.closed {
		return
	}
	e.looking = false
	var changes lineage.Changes
	if err == nil {
		changes, err = e.top.Apply(id, f.scan, func(s lineage.Shard) lineage.Initial { return f.initial[s.ID] })
		if errors.Is(err, ErrRecreated) {
			err = sdk.Fatalf("kinesis: stream %q: %w at %s: start the job without its saved state (--restore none) to read the new one", e.source.name(), err, stamp(f.scan.Created))
		}
	}
	if err != nil {
		e.failed(err)
		return
	}
	e.failures = 0
	e.meters.looks.Add(1)
	e.changed(changes, f.now)
	if err := e.problem(); err != nil {
		e.fail(err)
		return
	}
	e.resolve()
	e.want()
	if err := e.distribute(); err != nil {
		e.fail(err)
		return
	}
	pause := e.source.DiscoveryInterval
	if changes.Missed > 0 {
		pause = min(pause, missedWait)
	}
	e.next(pause)
}

// changed tells people what a look changed.
func (e *enumerator) changed(c lineage.Changes, now time.Time) {
	log := e.ctx.Logger()
	if c.First && e.bounded() {
		e.top.SetStop(e.stopAt(now))
	}
	if len(c.Found) > 0 {
		log.Info("new shards", "count", len(c.Found), "first", c.Found[0])
	}
	if c.Missed > 0 {
		log.Warn("shards that were not read to their end are not listed at the moment", "count", c.Missed)
	}
	e.lost(c.Lost)
}

// stopAt makes the stop concrete: the latest position is now, and the second that the service's clock may be late.
func (e *enumerator) stopAt(now time.Time) int64 {
	if e.source.Stop.kind == timestampPosition {
		return e.source.Stop.at.UnixMilli()
	}
	return now.Add(time.Second).UnixMilli()
}

func (e *enumerator) lost(shards []string) {
	if len(shards) == 0 {
		return
	}
	e.meters.lost.Add(int64(len(shards)))
	e.ctx.Logger().Error("shards expired before they were read to their end; going on with their children", "count", len(shards), "shards", shards[:min(len(shards), 10)])
}

// failed decides between another try and the end of the epoch. What runs goes on with what it has.
func (e *enumerator) failed(err error) {
	e.failures++
	e.meters.failures.Add(1)
	if final(err) || !e.top.FirstDone() && e.failures >= failAfter {
		e.fail(fmt.Errorf("look for shards, try %d: %w", e.failures, err))
		return
	}
	pause := retryPause(e.failures)
	e.ctx.Logger().Warn("looking for shards failed, readers go on with what they have", "error", err, "try", e.failures, "again_in", pause)
	e.next(pause)
}

func final(err error) bool {
	_, config := errors.AsType[*ConfigError](err)
	return config || errors.Is(err, sdk.ErrFatal) || errors.Is(err, sdk.ErrIncompatibleState)
}

func retryPause(failures int) time.Duration {
	return min(minRetry<<min(max(failures-1, 0), 10), maxRetry)
}

func (e *enumerator) next(pause time.Duration) {
	if e.again {
		e.discover()
		return
	}
	e.ctx.Schedule(keyDiscover, pause, e.discover)
}

// fail ends the epoch from a callback, which cannot return an error.
func (e *enumerator) fail(err error) {
	e.ctx.Call(keyFail, func(context.Context) (any, error) { return nil, err }, func(any, error) {},
		sdk.CallOptions{OnFailure: sdk.FailCoordinator})
}

// resolve makes the batch of starts concrete, on a worker.
func (e *enumerator) resolve() {
	id, shards := e.top.Batch()
	if len(shards) == 0 || e.closed {
		return
	}
	sdk.CallAsync(e.ctx, keyResolve, func(ctx context.Context) (map[string]lineage.Position, error) {
		v, err := e.lazy.get(ctx)
		if err != nil {
			return nil, err
		}
		return v.resolve(ctx, shards)
	}, func(positions map[string]lineage.Position, err error) { e.resolved(id, positions, err) },
		sdk.CallOptions{Timeout: e.source.ScanTimeout + time.Minute, Overlap: sdk.SkipIfRunning})
}

// resolved is back on the loop with all positions, or with none.
func (e *enumerator) resolved(id lineage.BatchID, positions map[string]lineage.Position, err error) {
	if e.closed {
		return
	}
	applied := false
	if err == nil {
		applied, err = e.top.Resolve(id, positions)
	}
	switch {
	case err != nil && (final(err) || e.tries+1 >= failAfter):
		e.fail(fmt.Errorf("kinesis: stream %q: find the latest positions, try %d: %w", e.source.name(), e.tries+1, err))
		return
	case err != nil:
		e.tries++
		pause := retryPause(e.tries)
		e.ctx.Logger().Warn("the latest positions cannot be found, nothing is read before that", "error", err, "try", e.tries, "again_in", pause)
		e.ctx.Schedule(keyResolve, pause, e.resolve)
		return
	case !applied: // stale: what changed meanwhile is asked for anew
		e.resolve()
		return
	}
	e.tries = 0
	e.ctx.Logger().Info("latest positions found", "shards", len(positions))
	e.want()
	if err := e.distribute(); err != nil {
		e.fail(err)
	}
}
