package kinesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// request is what a call goroutine is given: copies, because the shard belongs to the fetcher.
type request struct {
	shard     *shard // handed back; nothing of it but the budget, which is everybody's, is touched here
	split     Split
	iterator  string
	confirmed bool
	began     time.Time
	reserved  int64
	life      uint64 // of a follower
}

// result is what a call brought. It is handed back to the fetcher's goroutine, which alone changes anything.
type result struct {
	request
	opened
	next     string // iterator; empty at the end of the shard
	ended    bool   // nothing follows in the shard
	children []string
	behind   int64 // milliseconds, -1 when the service did not say
	at       time.Time
	sum      summary // set when it was asked for
	// continuation is where a subscription goes on, which moves without records too.
	continuation string

	kind failure // of err
	err  error
	// fatal says that err is to end the job, wait that the place lies in the future, expired that records before it are gone, vanished
	// that the shard is.
	fatal    bool
	wait     time.Duration
	gap      bool
	vanished bool
	old      bool // a time older than what the stream holds
}

// run makes the calls of one poll: what is to be known first, an iterator when there is none, then the records.
func (c *caller) run(ctx context.Context, q request) result {
	r := result{request: q, behind: -1}
	if !q.confirmed && !c.confirm(ctx, &r) {
		return r
	}
	if r.iterator == "" {
		iterator, err := c.service.iterator(ctx, q.split.Shard, q.split.Position)
		if err == nil && iterator == "" {
			err = errors.New("the service gave no iterator")
		}
		if err != nil {
			c.failed(ctx, &r, "GetShardIterator", err)
			return r
		}
		r.iterator = iterator
	}
	q.shard.budget.sent(time.Now())
	out, at, err := c.service.records(ctx, r.iterator, int32(c.service.source.MaxRecords))
	if err != nil {
		c.failed(ctx, &r, "GetRecords", err)
		return r
	}
	r.at, r.next = at, aws.ToString(out.NextShardIterator)
	if out.MillisBehindLatest != nil {
		r.behind = *out.MillisBehindLatest
	}
	r.opened = c.opener.open(out.Records, q.split.Position, q.split.Hashes)
	for _, child := range out.ChildShards {
		r.children = append(r.children, aws.ToString(child.ShardId))
	}
	if r.next == "" {
		c.end(ctx, &r)
	}
	return r
}

// caller makes calls, on goroutines of their own.
type caller struct {
	service *service
	opener  opener
}

// end finds out what an answer without a next iterator means. With children it is the end of the shard. Without, it may be an answer that
// lacks half of itself, so the list of shards decides.
func (c *caller) end(ctx context.Context, r *result) {
	if len(r.children) > 0 {
		r.ended = true
		return
	}
	closed, err := c.service.closed(ctx, r.split.Shard)
	switch {
	case errors.Is(err, errNoShard), err == nil && closed:
		r.ended = true
	case err != nil:
		r.kind, r.err = failureOf(err), err
	default:
		r.kind, r.err = unclear, fmt.Errorf("kinesis: shard %s: the service ended an open shard", r.split.Shard)
	}
}

// confirm makes sure, before the first call, that the stream is the one that was meant, and that what was not read is still there.
func (c *caller) confirm(ctx context.Context, r *result) bool {
	sum, err := c.service.shared.summary(ctx, c.service.describe)
	if err != nil {
		r.kind, r.err, r.fatal = failureOf(err), err, errors.Is(err, ErrStreamMissing)
		return false
	}
	r.sum = sum
	if err := c.service.same(r.split, sum); err != nil {
		r.err, r.fatal = err, true
		return false
	}
	now, p := sum.now(), r.split.Position
	if p.Kind == lineage.AtTimestamp {
		if r.wait = time.UnixMilli(p.Millis).Sub(now); r.wait > 0 {
			return false
		}
	}
	r.gap = p.Kind == lineage.AfterSequence && p.Millis > 0 && sum.retention > 0 && now.Sub(time.UnixMilli(p.Millis)) > sum.retention
	return !r.gap || c.service.source.OnLost == Continue
}

// same reports a stream that was created anew.
func (v *service) same(s Split, now summary) error {
	if s.Created == 0 || now.created == 0 || s.Created == now.created {
		return nil
	}
	return &ShardError{
		Stream: v.source.name(), Shard: s.Shard, Position: s.Position,
		Problem:  fmt.Sprintf("the stream was deleted and created anew: it was created at %s and is now from %s", stamp(s.Created), stamp(now.created)),
		Remedy:   "start the job without its saved state (--restore none) to read the new stream",
		Sentinel: ErrRecreated,
	}
}

// failed classifies an error of a call. What is missing has to be looked into: the stream may be gone, or another one, or only the shard.
func (c *caller) failed(ctx context.Context, r *result, operation string, err error) {
	r.kind = failureOf(err)
	r.err = c.service.explain(ctx, operation, err)
	switch r.kind {
	case missing:
		c.lookFor(ctx, r)
	case refused:
		p := r.split.Position
		if operation == "GetRecords" {
			r.kind = expired // an iterator that the service does not take: another one
			return
		}
		if p.Kind == lineage.AtTimestamp {
			r.old = true
			return
		}
		if !c.lookFor(ctx, r) { // the place may be one of another stream of that name
			return
		}
		r.fatal = true
		r.err = &ShardError{
			Stream: c.service.source.name(), Shard: r.split.Shard, Position: p, Sentinel: ErrPosition, Err: err,
			Problem: "the service does not take that place", Remedy: "check the sequence numbers of start; a saved position belongs to the stream that it was read from",
		}
	case throttled, expired, inUse, denied, unknownCaller, unreachable, unclear:
	}
}

// lookFor finds out what is missing. It reports that nothing is: the stream is the one that was meant, and lists the shard.
func (c *caller) lookFor(ctx context.Context, r *result) (here bool) {
	c.service.shared.forget()
	sum, err := c.service.shared.summary(ctx, c.service.describe)
	switch {
	case errors.Is(err, ErrStreamMissing), err == nil && sum.status == types.StreamStatusDeleting:
		r.fatal = true
		r.err = &ShardError{
			Stream: c.service.source.name(), Shard: r.split.Shard, Position: r.split.Position, Sentinel: ErrStreamMissing, Err: err,
			Problem: "the stream was deleted", Remedy: "end the job; when a stream of that name exists again, start it without its saved state (--restore none)",
		}
		return false
	case err != nil:
		r.kind, r.err = failureOf(err), err
		return false
	}
	if err := c.service.same(r.split, sum); err != nil {
		r.err, r.fatal = err, true
		return false
	}
	if _, err := c.service.closed(ctx, r.split.Shard); errors.Is(err, errNoShard) {
		r.vanished = true
		return false
	}
	r.kind = unclear // whoever did not know it has not heard of it yet
	return true
}
