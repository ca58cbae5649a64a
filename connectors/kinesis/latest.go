package kinesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// scans bounds the shards that are read to their end at a time, over all jobs of the process.
var scans = make(chan struct{}, 8)

// resolve makes the latest position of shards concrete, all of them or none.
func (v *service) resolve(ctx context.Context, shards []string) (map[string]lineage.Position, error) {
	if v.source.LatestBy == ByScan {
		return v.scanAll(ctx, shards)
	}
	sum, err := v.describe(ctx)
	if err != nil {
		return nil, err
	}
	at, err := sum.latest()
	if err != nil {
		return nil, err
	}
	positions := make(map[string]lineage.Position, len(shards))
	for _, s := range shards {
		positions[s] = at
	}
	return positions, nil
}

// scanAll reads every shard to its end. One that fails ends the others: their results would be thrown away.
func (v *service) scanAll(ctx context.Context, shards []string) (map[string]lineage.Position, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, v.source.ScanTimeout, fmt.Errorf("kinesis: latest_by scan: not done after %s: %w", v.source.ScanTimeout, context.DeadlineExceeded))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	positions := make([]lineage.Position, len(shards))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(shards), cap(scans)) {
		workers.Go(func() {
			for i := range next {
				p, err := v.scanOne(ctx, shards[i])
				if err != nil {
					fail(err)
					return
				}
				positions[i] = p
			}
		})
	}
	for i := range shards {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	byShard := make(map[string]lineage.Position, len(shards))
	for i, s := range shards {
		byShard[s] = positions[i]
	}
	return byShard, nil
}

// recent is how far back a scan begins: where a shard has records, the last of them is most often there.
const recent = 5 * time.Minute

// scanOne finds the place behind the last record of a shard. It begins a few minutes back; only when nothing is found there the whole shard is
// read. Where a shard holds no record at all, its beginning is its end.
func (v *service) scanOne(ctx context.Context, shard string) (lineage.Position, error) {
	select {
	case scans <- struct{}{}:
		defer func() { <-scans }()
	case <-ctx.Done():
		return lineage.Position{}, context.Cause(ctx)
	}
	sum, err := v.shared.summary(ctx, v.describe)
	if err != nil {
		return lineage.Position{}, err
	}
	for _, from := range []lineage.Position{lineage.FromTime(sum.now().Add(-recent)), lineage.FromTrimHorizon()} {
		at, err := v.tip(ctx, shard, from)
		if err != nil || at.Kind == lineage.AfterSequence {
			return at, err
		}
	}
	return lineage.FromTrimHorizon(), nil
}

// maxScanTries bounds failures in a row of one shard.
const maxScanTries = 8

// tip reads from a place to the end of the shard and answers where the last record ended, or the place when there was none.
func (v *service) tip(ctx context.Context, shard string, from lineage.Position) (lineage.Position, error) {
	b := v.shared.budget(shard, time.Now())
	at, iterator, tries := from, "", 0
	for {
		if err := v.turn(ctx, b); err != nil {
			return at, err
		}
		began := time.Now()
		next, done, err := v.step(ctx, shard, &at, iterator)
		switch {
		case err == nil && done:
			return at, nil
		case err == nil:
			iterator, tries = next, 0
			continue
		case ctx.Err() != nil:
			return at, context.Cause(ctx)
		}
		tries++
		switch kind := failureOf(err); {
		case kind == refused && at.Kind == lineage.AtTimestamp: // from before what the stream holds
			at = lineage.FromTrimHorizon()
		case kind == denied, kind == unknownCaller, kind == missing, tries >= maxScanTries:
			return at, v.explain(ctx, "GetRecords", fmt.Errorf("shard %s: %w", shard, err))
		case kind == throttled:
			b.throttled(began)
		case kind == expired:
			iterator = ""
		}
		if err := sleep(ctx, pause(tries)); err != nil {
			return at, err
		}
	}
}

// turn waits until the shard may be polled.
func (v *service) turn(ctx context.Context, b *budget) error {
	for {
		wait := b.take(time.Now())
		if wait == 0 {
			return nil
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// step reads one page and moves at behind it.
func (v *service) step(ctx context.Context, shard string, at *lineage.Position, iterator string) (next string, done bool, err error) {
	if iterator == "" {
		if iterator, err = v.iterator(ctx, shard, *at); err != nil {
			return "", false, err
		}
	}
	began := time.Now()
	out, now, err := v.records(ctx, iterator, int32(v.source.MaxRecords))
	if err != nil {
		return iterator, false, err
	}
	page := opener{}.open(out.Records, lineage.Position{Sub: lineage.Whole}, lineage.HashRange{})
	v.shared.budget(shard, began).paid(began, page.bytes)
	if page.last.Concrete() {
		*at = page.last
	}
	switch {
	case out.NextShardIterator == nil && len(out.ChildShards) == 0 && out.MillisBehindLatest == nil:
		return "", false, errors.New("the service answered without a next iterator")
	case out.NextShardIterator == nil, out.MillisBehindLatest != nil && *out.MillisBehindLatest == 0:
		if at.Kind == lineage.AfterSequence {
			at.Millis = max(at.Millis, now.UnixMilli()) // nothing followed by then
		}
		return "", true, nil
	default:
		return *out.NextShardIterator, false, nil
	}
}
