package kinesistest

import (
	"context"
	"errors"
	"net/http"
	"time"
)

const (
	subscriptionLife = 5 * time.Minute
	// takeOverAfter is how old a subscription is before another one of the same consumer and shard replaces it; before, the other one is refused.
	takeOverAfter = 5 * time.Second
	// beatEvery is how often a subscription without records gets an event.
	beatEvery = 5 * time.Second
	// eventBytes is how much data an event holds, or one record.
	eventBytes = 1 << 20
)

type startingPosition struct {
	Type           string
	SequenceNumber *string
	Timestamp      *moment
}

type subscribeToShard struct {
	ConsumerARN      string
	ShardId          string
	StartingPosition *startingPosition
}

func (r *subscribeToShard) target(s *Server) Target {
	t := consumerRef{ConsumerARN: r.ConsumerARN}.target(s)
	t.Shard = r.ShardId
	return t
}

// subscription is one that is open, or was the last of its consumer and shard. The server's lock guards it.
type subscription struct {
	stream   *stream
	consumer *consumer
	shard    *shard
	since    time.Time
	index    uint64    // the first that is not sent
	beat     time.Time // of the next event without records
}

func (r *subscribeToShard) serve(s *Server) (any, error) {
	if r.StartingPosition == nil {
		return nil, fail(validation, "StartingPosition is missing")
	}
	st, c, err := s.consumer(consumerRef{ConsumerARN: r.ConsumerARN})
	if err != nil {
		return nil, err
	}
	_, sh, err := s.shard(streamRef{StreamName: st.name}, r.ShardId)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	if state := c.status(now); state != active {
		return nil, fail(resourceInUse, "consumer %s is %s, not ACTIVE", c.name, state)
	}
	before := c.subs[sh.id]
	if before != nil && now.Sub(before.since) < takeOverAfter {
		return nil, fail(resourceInUse, "consumer %s subscribed to %s %s ago: another subscription replaces it after %s", c.name, sh.id, now.Sub(before.since), takeOverAfter)
	}
	p := r.StartingPosition
	index, err := start{p.Type, p.SequenceNumber, p.Timestamp}.index(st, sh, now)
	if err != nil {
		return nil, err
	}
	sub := &subscription{stream: st, consumer: c, shard: sh, since: now, index: index, beat: now}
	c.subs[sh.id] = sub
	if before != nil {
		sh.wake()
	}
	return sub, nil
}

// subscribeEvent is what a subscriber gets.
type subscribeEvent struct {
	Records                    []wireRecord
	ContinuationSequenceNumber *string     `json:",omitempty"` // absent at the end of the shard
	MillisBehindLatest         int64       // 0 at the tip
	ChildShards                []wireChild `json:",omitempty"`

	last bool // the shard is closed and all is sent
}

// errOver ends a subscription without an error.
var errOver = errors.New("kinesistest: the subscription is over")

// next returns what is to be sent now. Without anything it returns when to ask again, or earlier when wake is closed.
func (s *Server) next(sub *subscription) (event *subscribeEvent, again time.Time, wake <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, sh := s.clock.Now(), sub.shard
	switch {
	case s.mu.streams[sub.stream.name] != sub.stream:
		return nil, now, nil, fail(notFound, "stream %s was deleted", sub.stream.name)
	case sub.consumer.gone:
		return nil, now, nil, fail(notFound, "consumer %s was deregistered", sub.consumer.name)
	case sub.consumer.subs[sh.id] != sub:
		return nil, now, nil, fail(resourceInUse, "another subscription of consumer %s to %s took over", sub.consumer.name, sh.id)
	case now.Sub(sub.since) >= subscriptionLife:
		return nil, now, nil, errOver
	}
	s.mu.held -= sh.trim(now, sub.stream.retention)
	p := sh.read(now, sub.index, pageRecords, eventBytes)
	if len(p.records) == 0 && !p.ended && now.Before(sub.beat) {
		if end := sub.since.Add(subscriptionLife); end.Before(sub.beat) {
			return nil, end, sh.grown, nil
		}
		return nil, sub.beat, sh.grown, nil
	}
	event = &subscribeEvent{Records: make([]wireRecord, len(p.records)), MillisBehindLatest: p.behind.Milliseconds()}
	for i, read := range p.records {
		event.Records[i] = read.wire()
	}
	sub.index, sub.beat = p.next, now.Add(beatEvery)
	if p.ended {
		event.ChildShards, event.last = sh.wireChildren(), true
		return event, now, nil, nil
	}
	if p.behind == 0 {
		sub.index = max(p.next, sub.stream.written+1)
	}
	continuation := sh.sequence(sub.index, now)
	event.ContinuationSequenceNumber = &continuation
	return event, now, nil, nil
}

// push sends a subscription's events until it is over or the client leaves.
func (s *Server) push(ctx context.Context, w http.ResponseWriter, call Call, sub *subscription) error {
	out := newEventWriter(w)
	if err := out.event(initialResponse, []byte("{}")); err != nil {
		return err
	}
	call.Operation = SubscribeToShardEvent
	for {
		event, again, wake, err := s.next(sub)
		if err == nil && event == nil {
			if err := s.clock.until(ctx, again, wake); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = s.send(ctx, out, call, event)
		}
		if refused, ok := errors.AsType[*apiError](err); ok {
			return out.exception(refused)
		}
		if errors.Is(err, errOver) || (err == nil && event.last) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send sends one event, with the fault that hits it.
func (s *Server) send(ctx context.Context, out *eventWriter, call Call, event *subscribeEvent) error {
	fault := s.faults.take(&call)
	effect := &fault.fault.Effect
	if effect.before != nil {
		if err := effect.before(ctx, s, fault); err != nil {
			return err
		}
	}
	if effect.after != nil {
		s.mu.Lock()
		effect.after(s, event)
		s.mu.Unlock()
	}
	payload, err := effect.encode(event)
	if err != nil {
		return fail(internalFailure, "%v", err)
	}
	frame, err := out.frame(eventMessage, eventTypeHeader, shardEvent, payload)
	if err != nil {
		return err
	}
	switch effect.send {
	case whole:
		return out.write(frame)
	case lost:
		return errAbort
	case half:
		_ = out.write(frame[:len(frame)/2]) // the connection is closed anyway
		return errAbort
	case corrupt:
		frame[len(frame)/2] ^= 0x20
		return out.write(frame)
	case over:
		return errOver
	}
	return nil
}
