package kinesis

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

const (
	// subscribeEvery is how soon after one subscription the next of the same shard is refused.
	subscribeEvery = 5 * time.Second
	// silence is how long a subscription may bring nothing, not even an empty event, which the service sends every few seconds.
	silence = 30 * time.Second
)

// follower holds the subscription of one shard, on a goroutine of its own, and makes another one whenever it ends: that is routine, every five
// minutes, and goes on from where the last event left off. A stream of events that closes says nothing about the shard: its end is an event
// without a continuation.
type follower struct {
	*subscriber
	caller  caller
	request request

	sum        summary
	subscribed time.Time // the last time that it worked
	failures   int       // in a row
}

// loop runs until ctx ends or the fetcher has to decide something.
func (f *follower) loop(ctx context.Context) {
	if !f.begin(ctx) {
		return
	}
	for {
		if err := sleepUntil(ctx, f.subscribed.Add(subscribeEvery)); err != nil {
			return
		}
		over, err := f.subscribe(ctx)
		if over || ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		if over = f.failed(ctx, err); over {
			return
		}
		if err := sleep(ctx, pause(f.failures)); err != nil {
			return
		}
	}
}

func sleepUntil(ctx context.Context, t time.Time) error {
	if wait := time.Until(t); wait > 0 {
		return sleep(ctx, wait)
	}
	return ctx.Err()
}

// begin makes sure that the stream is the one that was meant and the place within what it holds.
func (f *follower) begin(ctx context.Context) bool {
	for !f.request.confirmed {
		r := result{request: f.request, behind: -1}
		ok := f.caller.confirm(ctx, &r)
		switch {
		case ctx.Err() != nil:
			return false
		case r.wait > 0:
			if sleep(ctx, r.wait) != nil {
				return false
			}
			continue
		case r.err != nil && !r.fatal:
			f.failures++
			f.meters.failed.Add(1)
			if sleep(ctx, pause(f.failures)) != nil {
				return false
			}
			continue
		case !ok || r.gap: // told, and for a gap gone on with when the policy is that
			if !f.tell(ctx, r) || !ok {
				return false
			}
		}
		f.sum, f.request.confirmed, f.failures = r.sum, true, 0
	}
	return true
}

// tell hands a result to the fetcher, which may be a while until it takes it.
func (f *follower) tell(ctx context.Context, r result) bool {
	select {
	case f.events <- r:
		return true
	case <-ctx.Done():
		return false
	}
}

// subscribe makes one subscription and hands its events over until it ends. over says that there is nothing more to follow.
func (f *follower) subscribe(ctx context.Context) (over bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watch.Stop()
	out, err := f.service.client.SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{
		ConsumerARN: &f.arn, ShardId: &f.request.split.Shard, StartingPosition: startingPosition(f.request.split.Position),
	}, ownProtocol)
	if err != nil {
		return false, err
	}
	f.subscribed = time.Now()
	f.meters.resubscribed.Add(1)
	stream := out.GetStream()
	defer func() { _ = stream.Close() }() // what ended it is told by Err
	for {
		watch.Reset(silence)
		var event types.SubscribeToShardEventStream
		var more bool
		select {
		case event, more = <-stream.Events():
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		watch.Stop()
		if !more {
			return f.closed(ctx, stream.Err())
		}
		member, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if !ok {
			continue // of a kind that this version does not know
		}
		if over, err := f.event(ctx, &member.Value); over || err != nil {
			return over, err
		}
	}
}

// ownProtocol gives a subscription a decoder of its own. The client's is one for all calls and keeps the buffer that events are read into, so two
// subscriptions of one client would write over each other's events.
func ownProtocol(o *kinesis.Options) { o.Protocol = awsjson.New11(schemas.Kinesis_20131202) }

// closed looks at why a stream of events ended. Without an error that is its age, or a connection that broke: the next one goes on.
func (f *follower) closed(ctx context.Context, err error) (over bool, _ error) {
	if err == nil || ctx.Err() != nil {
		return false, nil
	}
	if failureOf(err) == inUse {
		f.tell(ctx, result{request: f.request, behind: -1, err: f.service.takenOver(f.request.split, err)})
		return true, nil
	}
	return false, err
}

// event hands one event over and moves the place of the next subscription behind it.
func (f *follower) event(ctx context.Context, e *types.SubscribeToShardEvent) (over bool, err error) {
	split := &f.request.split
	r := result{request: f.request, behind: -1, at: f.sum.now(), continuation: aws.ToString(e.ContinuationSequenceNumber)}
	if e.MillisBehindLatest != nil {
		r.behind = *e.MillisBehindLatest
	}
	r.opened = f.opener.open(e.Records, split.Position, split.Hashes)
	for _, child := range e.ChildShards {
		r.children = append(r.children, aws.ToString(child.ShardId))
	}
	if e.ContinuationSequenceNumber == nil {
		if f.caller.end(ctx, &r); r.err != nil && len(r.elements) == 0 {
			return false, r.err
		}
	}
	unfinished := r.err
	r.err = nil
	f.failures = 0
	if !f.tell(ctx, r) {
		return true, nil
	}
	split.Position = r.place(split.Position)
	return r.ended, unfinished
}

// failed decides what an error of a subscription means. It reports that the fetcher has been told and there is nothing more to do.
func (f *follower) failed(ctx context.Context, err error) (over bool) {
	f.failures++
	kind := failureOf(err)
	r := result{request: f.request, behind: -1, kind: kind, err: err}
	switch kind {
	case throttled:
		f.meters.throttled.Add(1)
		return false
	case inUse: // a subscription of ours, perhaps of an earlier life, is not five seconds old
		f.subscribed = time.Now()
		return false
	case missing, refused:
		f.caller.failed(ctx, &r, "SubscribeToShard", err)
		if r.old {
			f.request.split.Position = lineage.FromTrimHorizon()
			return false
		}
		if r.fatal || r.vanished {
			f.tell(ctx, r)
			return true
		}
	case denied, unknownCaller:
		if f.failures >= maxDenied {
			r.err = f.service.explain(ctx, "SubscribeToShard", err)
			f.tell(ctx, r)
			return true
		}
	case expired, unreachable, unclear:
	}
	f.meters.failed.Add(1)
	if !errors.Is(err, errSilent) {
		f.log.warn("a subscription ended with an error", "shard", f.request.split.Shard, "error", err, "try", f.failures)
	}
	if f.failures >= maxMissing && kind == missing { // the shard is there, so it is the consumer that is not
		r.err = f.service.consumerError("SubscribeToShard", err)
		f.tell(ctx, r)
		return true
	}
	return false
}

// maxMissing is how often a subscription may find nothing although the shard is listed, before the consumer is taken to be gone.
const maxMissing = 3

func startingPosition(at lineage.Position) *types.StartingPosition {
	p := &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon}
	switch at.Kind {
	case lineage.AtTimestamp:
		p.Type, p.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(time.UnixMilli(at.Millis))
	case lineage.AtSequence:
		p.Type, p.SequenceNumber = types.ShardIteratorTypeAtSequenceNumber, &at.Sequence
	case lineage.AfterSequence:
		p.Type, p.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &at.Sequence
		if at.Sub != lineage.Whole { // parts of that record are still to come
			p.Type = types.ShardIteratorTypeAtSequenceNumber
		}
	case lineage.Unresolved, lineage.TrimHorizon:
	}
	return p
}
