package kinesis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// found is what one look at the stream brought, made on a worker.
type found struct {
	scan lineage.Scan
	// initial says where the shards of a first snapshot begin; nil for a later one.
	initial map[string]lineage.Initial
	// now is the service's clock, for a stop that is still to be made concrete.
	now time.Time
}

// look lists the shards that exist now. The first look also says where each of them begins.
func (v *service) look(ctx context.Context, first bool) (found, error) {
	sum, err := v.describe(ctx)
	if err != nil {
		if errors.Is(err, ErrStreamMissing) {
			return found{}, sdk.Fatal(err)
		}
		return found{}, err
	}
	if sum.status == types.StreamStatusDeleting {
		return found{}, sdk.Fatal(&ServiceError{
			Operation: "DescribeStreamSummary", Stream: v.source.name(), Option: "stream", Sentinel: ErrStreamMissing,
			Err: errors.New("it is being deleted"), Remedy: "end the job; when a stream of that name exists again, start it without its saved state (--restore none)",
		})
	}
	shards, err := v.wholeList(ctx, first)
	if err != nil {
		return found{}, err
	}
	f := found{scan: lineage.Scan{Created: sum.created, Shards: make([]lineage.Shard, len(shards))}, now: sum.now()}
	for i := range shards {
		f.scan.Shards[i] = shardOf(&shards[i])
	}
	if first {
		f.initial, err = v.starts(ctx, f, sum)
	}
	return f, err
}

// tilings is how often a list whose open shards leave a gap is asked for anew, with a pause in between: while a stream is resharded a list may
// be of two minds. What it leaves out then is found later, and read from its beginning.
const (
	tilings    = 3
	tilingWait = time.Second
)

// wholeList is the list of all shards. For the first snapshot its open shards are to cover all hash keys.
func (v *service) wholeList(ctx context.Context, first bool) ([]types.Shard, error) {
	for try := 1; ; try++ {
		shards, err := v.list(ctx, nil)
		if err != nil || !first || try == tilings || tiles(shards) {
			return shards, err
		}
		if err := sleep(ctx, tilingWait); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tiles reports that the hash keys of the open shards lie one behind the other, from the first key there is to the last.
func tiles(shards []types.Shard) bool {
	var open []lineage.HashRange
	for i := range shards {
		if isClosed(&shards[i]) {
			continue
		}
		h := hashRange(shards[i].HashKeyRange)
		if !h.Known {
			return true // a stream that distributes records by itself
		}
		open = append(open, h)
	}
	slices.SortFunc(open, func(a, b lineage.HashRange) int { return bytes.Compare(a.Start[:], b.Start[:]) })
	var next [16]byte
	for i, h := range open {
		if h.Start != next {
			return false
		}
		next = after(h.End)
		if next == ([16]byte{}) {
			return i == len(open)-1
		}
	}
	return false
}

// after is n+1, which is 0 behind the last key.
func after(n [16]byte) [16]byte {
	for i := len(n) - 1; i >= 0; i-- {
		if n[i]++; n[i] != 0 {
			break
		}
	}
	return n
}

func shardOf(s *types.Shard) lineage.Shard {
	shard := lineage.Shard{ID: aws.ToString(s.ShardId), Closed: isClosed(s), Hashes: hashRange(s.HashKeyRange)}
	for _, p := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
		if id := aws.ToString(p); id != "" {
			shard.Parents = append(shard.Parents, id)
		}
	}
	return shard
}

func hashRange(r *types.HashKeyRange) (h lineage.HashRange) {
	if r == nil {
		return h
	}
	start, ok1 := hashKey(aws.ToString(r.StartingHashKey))
	end, ok2 := hashKey(aws.ToString(r.EndingHashKey))
	if ok1 && ok2 {
		h = lineage.HashRange{Known: true, Start: start, End: end}
	}
	return h
}

// clockMargin is taken off the service's clock for a start at the latest position. The clock comes in whole seconds, so the start lies one to
// two seconds back: what arrives while a request is on its way is never missed, and little is read that was there before.
const clockMargin = time.Second

// starts says where each shard of the first snapshot begins. Closed ones that ended before the start are left out.
func (v *service) starts(ctx context.Context, f found, sum summary) (map[string]lineage.Initial, error) {
	initial := make(map[string]lineage.Initial, len(f.scan.Shards))
	begin := lineage.Initial{Position: lineage.FromTrimHorizon()}
	var skip func(lineage.Shard) bool
	switch start := v.source.Start; start.kind {
	case unsetPosition, trimHorizonPosition:
	case latestPosition:
		begin = lineage.Initial{}
		if v.source.LatestBy == ByScan { // what is closed now holds nothing that is still to come
			skip = func(s lineage.Shard) bool { return s.Closed }
			break
		}
		at, err := sum.latest()
		if err != nil {
			return nil, err
		}
		skip = v.endedBefore(ctx, at.Millis)
	case timestampPosition:
		begin.Position = lineage.FromTime(start.at)
		skip = v.endedBefore(ctx, begin.Position.Millis)
	case sequencesPosition:
		return v.sequences(f.scan.Shards)
	}
	for _, s := range f.scan.Shards {
		initial[s.ID] = begin
		if skip != nil && skip(s) {
			initial[s.ID] = lineage.Initial{Skip: true}
		}
	}
	return initial, nil
}

// latest is the end of the stream, by the service's clock.
func (s summary) latest() (lineage.Position, error) {
	if s.at.IsZero() {
		return lineage.Position{}, &ConfigError{
			Option: "latest_by", Problem: "the service does not tell its time (no Date header)", Remedy: "use latest_by: scan, or start at a timestamp",
		}
	}
	return lineage.FromTime(s.at.Add(-clockMargin)), nil
}

// endedBefore finds the closed shards that hold nothing from a time on. The service knows; when it does not say, all of them are read, which
// costs some calls and delivers nothing more.
func (v *service) endedBefore(ctx context.Context, millis int64) func(lineage.Shard) bool {
	at := time.UnixMilli(millis)
	shards, err := v.list(ctx, &types.ShardFilter{Type: types.ShardFilterTypeFromTimestamp, Timestamp: &at})
	if err != nil {
		return func(lineage.Shard) bool { return false }
	}
	holds := make(map[string]bool, len(shards))
	for i := range shards {
		holds[aws.ToString(shards[i].ShardId)] = true
	}
	return func(s lineage.Shard) bool { return s.Closed && !holds[s.ID] }
}

// sequences places the named shards, leaves their ancestors out, and reads their descendants whole.
func (v *service) sequences(shards []lineage.Shard) (map[string]lineage.Initial, error) {
	byID := make(map[string]lineage.Shard, len(shards))
	for _, s := range shards {
		byID[s.ID] = s
	}
	named := v.source.Start.sequences
	initial := make(map[string]lineage.Initial, len(shards))
	var unknown []string
	for id, number := range named {
		if _, ok := byID[id]; !ok {
			unknown = append(unknown, id)
		}
		initial[id] = lineage.Initial{Position: lineage.At(number)}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, sdk.Fatal(&ConfigError{Option: "start", Problem: "the stream has no shard " + strings.Join(unknown, ", "), Remedy: "name shards that it lists (aws kinesis list-shards)", Err: ErrPosition})
	}
	var before func(id string)
	before = func(id string) {
		for _, p := range byID[id].Parents {
			if _, seen := initial[p]; !seen && byID[p].ID != "" {
				initial[p] = lineage.Initial{Skip: true}
				before(p)
			}
		}
	}
	for id := range named {
		before(id)
	}
	memo := make(map[string]bool)
	var missing []string
	for _, s := range shards {
		switch _, done := initial[s.ID]; {
		case done:
		case descends(s.ID, byID, named, memo):
			initial[s.ID] = lineage.Initial{Position: lineage.FromTrimHorizon()}
		default:
			missing = append(missing, s.ID)
		}
	}
	if len(missing) > 0 {
		return nil, sdk.Fatal(&ConfigError{Option: "start", Problem: fmt.Sprintf("sequences names neither %s nor a shard before or after it", missing[0]), Remedy: "name a sequence number for every shard that is to be read", Err: ErrPosition})
	}
	return initial, nil
}

// descends reports an ancestor that was named.
func descends(id string, byID map[string]lineage.Shard, named map[string]string, memo map[string]bool) bool {
	if known, ok := memo[id]; ok {
		return known
	}
	memo[id] = false // for as long as it takes: a list with a circle has no answer
	for _, p := range byID[id].Parents {
		if _, ok := named[p]; ok || descends(p, byID, named, memo) {
			memo[id] = true
			break
		}
	}
	return memo[id]
}
