package kinesistest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Effect is what a [Fault] does. Those about answers have no effect on requests of other operations.
type Effect struct {
	name string
	arm  func(*Server) Effect // when it is injected
	// before the request is served, on its own goroutine. An error is the answer.
	before func(context.Context, *Server, *Injection) error
	// prepare changes the request; instead replaces serving it; after changes the answer. All run under the server's lock.
	prepare func(request)
	instead func(*Server, request) (answer any, ok bool)
	after   func(*Server, any)
	// rewrite changes the answer as the client will see it.
	rewrite func(map[string]any)
	send    sending
}

// sending is how an answer leaves.
type sending int

const (
	whole   sending = iota
	lost            // served, and the connection closed instead of an answer
	half            // half of the answer, then the connection is closed
	corrupt         // a byte of an event differs from what its checksum was made of
	over            // a subscription ends in good order instead of an event
)

// errAbort closes the connection without a word more.
var errAbort = errors.New("kinesistest: the connection is cut")

// Fail answers with an error of the given name, such as "KMSThrottlingException", and message; HTTP status 400. As the effect on an event it ends the subscription with that error.
func Fail(name, message string) Effect {
	return Effect{name: name, before: func(context.Context, *Server, *Injection) error { return fail(code(name), "%s", message) }}
}

// Throttle answers ProvisionedThroughputExceededException.
func Throttle() Effect { return Fail(string(throughputExceeded), "injected") }

// LimitExceeded answers LimitExceededException.
func LimitExceeded() Effect { return Fail(string(limitExceeded), "injected") }

// Expire answers ExpiredIteratorException.
func Expire() Effect { return Fail(string(expiredIterator), "injected") }

// ExpireToken answers ExpiredNextTokenException.
func ExpireToken() Effect { return Fail(string(expiredToken), "injected") }

// InternalError answers InternalFailure with HTTP status 500.
func InternalError() Effect { return Fail(string(internalFailure), "injected") }

// Delay holds a request or event back for a time of the server's clock, or until the fault is removed.
func Delay(d time.Duration) Effect {
	return Effect{name: "delay", before: func(ctx context.Context, s *Server, i *Injection) error {
		if err := s.clock.until(ctx, s.clock.Now().Add(d), i.removed); err != nil {
			return errAbort
		}
		return nil
	}}
}

// Hang holds a request or event back until the client gives up or the fault is removed. A subscription so goes silent.
func Hang() Effect {
	return Effect{name: "hang", before: func(ctx context.Context, _ *Server, i *Injection) error {
		select {
		case <-ctx.Done():
			return errAbort
		case <-i.removed:
			return nil
		}
	}}
}

// Reset closes the connection; the request is not served.
func Reset() Effect {
	return Effect{name: "reset", before: func(context.Context, *Server, *Injection) error { return errAbort }}
}

// LoseAnswer serves the request and closes the connection instead of answering.
func LoseAnswer() Effect { return Effect{name: "lose answer", send: lost} }

// Cut sends half of the answer or event and closes the connection.
func Cut() Effect { return Effect{name: "cut", send: half} }

// Corrupt changes a byte of an event, so that its checksum is wrong.
func Corrupt() Effect { return Effect{name: "corrupt", send: corrupt} }

// EndStream ends a subscription in good order, as after its five minutes, instead of the event.
func EndStream() Effect { return Effect{name: "end of stream", send: over} }

// Rewrite changes an answer or event before it is sent. The function gets what encoding/json makes of it, with numbers as json.Number, and runs on the goroutine of the request.
func Rewrite(change func(answer map[string]any)) Effect {
	return Effect{name: "rewrite", rewrite: change}
}

// EmptyAnswer is a success without any member.
func EmptyAnswer() Effect { return Rewrite(func(answer map[string]any) { clear(answer) }) }

// EmptyPage answers GetRecords without records, from the same position, as so far behind the tip. The service does so when the next record is far away, and
// for ever when an iterator points at data that has expired.
func EmptyPage(behind time.Duration) Effect {
	return Effect{name: "empty page", instead: func(s *Server, r request) (any, bool) {
		get, ok := r.(*getRecords)
		if !ok {
			return nil, false
		}
		it, err := s.openIterator(get.ShardIterator)
		if err != nil {
			return nil, false
		}
		st, sh, err := s.shard(streamRef{StreamName: it.Stream}, it.Shard)
		if err != nil {
			return nil, false
		}
		next := s.sealIterator(st, sh, it.Index)
		return &getRecordsAnswer{Records: []wireRecord{}, NextShardIterator: &next, MillisBehindLatest: behind.Milliseconds()}, true
	}}
}

// WithholdEnd hides that a shard is closed and read: GetRecords answers with one more iterator, as if the shard were open.
func WithholdEnd() Effect {
	return Effect{name: "withhold end", after: func(s *Server, answer any) {
		if a, ok := answer.(*getRecordsAnswer); ok && a.NextShardIterator == nil {
			next := s.sealIterator(a.stream, a.shard, a.next)
			a.NextShardIterator, a.ChildShards = &next, nil
		}
	}}
}

// OmitChildren leaves the ChildShards out of the end of a shard, in answers and events.
func OmitChildren() Effect {
	return Effect{name: "omit children", after: func(_ *Server, answer any) {
		switch a := answer.(type) {
		case *getRecordsAnswer:
			a.ChildShards = nil
		case *subscribeEvent:
			a.ChildShards = nil
		}
	}}
}

// EndEarly leaves the iterator, or the continuation number of an event, out although the shard is open.
func EndEarly() Effect {
	return Effect{name: "end early", after: func(_ *Server, answer any) {
		switch a := answer.(type) {
		case *getRecordsAnswer:
			a.NextShardIterator = nil
		case *subscribeEvent:
			a.ContinuationSequenceNumber = nil
		}
	}}
}

// onList is an effect that changes what ListShards sees of the stream's shards.
func onList(name string, see func(*stream, []*shard) []*shard) Effect {
	return Effect{name: name, prepare: func(r request) {
		if list, ok := r.(*listShards); ok {
			list.see = see
		}
	}}
}

// StaleList makes ListShards see all streams as they were when the fault was injected.
func StaleList() Effect {
	return Effect{name: "stale list", arm: func(s *Server) Effect {
		s.mu.Lock()
		defer s.mu.Unlock()
		then := make(map[*stream][]*shard)
		for _, st := range s.mu.streams {
			for _, sh := range st.listed(s.clock.Now()) {
				frozen := *sh
				then[st] = append(then[st], &frozen)
			}
		}
		return onList("stale list", func(st *stream, now []*shard) []*shard {
			if old, ok := then[st]; ok {
				return old
			}
			return now
		})
	}}
}

// ParentsLookOpen makes ListShards show closed shards as open ones beside their children.
func ParentsLookOpen() Effect {
	return onList("parents look open", func(_ *stream, all []*shard) []*shard {
		seen := make([]*shard, len(all))
		for i, sh := range all {
			open := *sh
			open.ending = ""
			seen[i] = &open
		}
		return seen
	})
}

// OmitShards leaves shards out of what ListShards sees.
func OmitShards(ids ...string) Effect {
	return onList("omit shards", func(_ *stream, all []*shard) []*shard {
		return slices.DeleteFunc(slices.Clone(all), func(sh *shard) bool { return slices.Contains(ids, sh.id) })
	})
}

// RepeatPage makes the NextToken of a page of ListShards lead to the same page again.
func RepeatPage() Effect { return turnPage("repeat page", 0) }

// SkipPage makes the NextToken of a page of ListShards lead past the next page.
func SkipPage() Effect { return turnPage("skip page", 2) }

func turnPage(name string, pages int) Effect {
	return Effect{name: name, prepare: func(r request) {
		if list, ok := r.(*listShards); ok {
			list.turn = &pages
		}
	}}
}

// apply runs the parts of an effect that belong to serving, under the server's lock.
func (e *Effect) apply(s *Server, r request) (any, error) {
	if e.prepare != nil {
		e.prepare(r)
	}
	if e.instead != nil {
		if answer, ok := e.instead(s, r); ok {
			return answer, nil
		}
	}
	answer, err := r.serve(s)
	if err == nil && e.after != nil {
		e.after(s, answer)
	}
	return answer, err
}

// encode writes an answer with the changes of the effect. No answer is an empty one.
func (e *Effect) encode(answer any) ([]byte, error) {
	if answer == nil && e.rewrite == nil {
		return nil, nil
	}
	body, err := json.Marshal(answer)
	if err != nil || e.rewrite == nil {
		return body, err
	}
	var members map[string]any
	if err := unmarshalNumbers(body, &members); err != nil {
		return nil, err
	}
	if members == nil {
		members = make(map[string]any)
	}
	e.rewrite(members)
	if body, err = json.Marshal(members); err != nil {
		return nil, fmt.Errorf("kinesistest: what Rewrite left cannot be encoded: %w", err)
	}
	return body, nil
}
