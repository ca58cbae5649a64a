package kinesistest

import (
	"slices"
	"strings"
	"time"
)

const (
	maxConsumers = 20
	consumerPart = "/consumer/"
)

// consumer is one of enhanced fan-out. The server's lock guards it.
type consumer struct {
	name    string
	arn     string
	created time.Time
	until   time.Time                // when it is ACTIVE
	subs    map[string]*subscription // newest of each shard
	gone    bool                     // deregistered
}

func (c *consumer) status(now time.Time) status {
	if now.Before(c.until) {
		return creating
	}
	return active
}

func (c *consumer) wire(st *stream, now time.Time) wireConsumer {
	w := wireConsumer{ConsumerName: c.name, ConsumerARN: c.arn, ConsumerStatus: string(c.status(now)), ConsumerCreationTimestamp: momentOf(c.created)}
	if st != nil {
		w.StreamARN = st.arn()
	}
	return w
}

// consumerRef is how a request names a consumer: by its own ARN, or by name and stream.
type consumerRef struct {
	ConsumerARN  string
	ConsumerName string
	StreamARN    string
}

func (r consumerRef) target(*Server) Target {
	name := r.ConsumerName
	if name == "" {
		_, rest, _ := strings.Cut(r.ConsumerARN, consumerPart)
		name, _, _ = strings.Cut(rest, ":")
	}
	if stream := nameOfARN(r.StreamARN); stream != "" {
		return Target{Stream: stream, Consumer: name}
	}
	return Target{Stream: nameOfARN(r.ConsumerARN), Consumer: name}
}

func (s *Server) consumer(r consumerRef) (*stream, *consumer, error) {
	named := r.StreamARN
	if r.ConsumerARN != "" {
		named = r.ConsumerARN
	}
	if r.ConsumerARN == "" && (r.ConsumerName == "" || r.StreamARN == "") {
		return nil, nil, fail(invalidArgument, "want a ConsumerARN, or a ConsumerName and the StreamARN")
	}
	st, err := s.stream(streamRef{StreamARN: named})
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(st.consumers, func(c *consumer) bool {
		if r.ConsumerARN != "" {
			return c.arn == r.ConsumerARN
		}
		return c.name == r.ConsumerName
	})
	if at < 0 {
		return nil, nil, fail(notFound, "consumer %s%s of stream %s is not registered", clip(r.ConsumerName), clip(r.ConsumerARN), st.name)
	}
	return st, st.consumers[at], nil
}

type registerStreamConsumer struct {
	StreamARN    string
	ConsumerName string
}

func (r *registerStreamConsumer) target(*Server) Target {
	return Target{Stream: nameOfARN(r.StreamARN), Consumer: r.ConsumerName}
}

type registerStreamConsumerAnswer struct{ Consumer wireConsumer }

func (r *registerStreamConsumer) serve(s *Server) (any, error) {
	st, err := s.stream(streamRef{StreamARN: r.StreamARN})
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	switch {
	case !validName.MatchString(r.ConsumerName):
		return nil, fail(validation, "ConsumerName %q: want 1 to 128 letters, digits, underscores, dots and hyphens", clip(r.ConsumerName))
	case !s.options.Unlimited && !st.registrations.admit(now, 0, consumerCalls, 0):
		return nil, fail(limitExceeded, "stream %s: more than %d changes of consumers within a second", st.name, consumerCalls)
	case len(st.consumers) >= maxConsumers:
		return nil, fail(limitExceeded, "stream %s has %d consumers, as many as it may have", st.name, maxConsumers)
	case slices.ContainsFunc(st.consumers, func(c *consumer) bool { return c.name == r.ConsumerName }):
		return nil, fail(resourceInUse, "consumer %s of stream %s is already registered", r.ConsumerName, st.name)
	}
	// One that is registered again has another ARN.
	s.mu.created = max(s.mu.created+1, seconds(now))
	c := &consumer{
		name: r.ConsumerName, created: now, until: now.Add(s.options.ControlTime), subs: make(map[string]*subscription),
		arn: st.arn() + consumerPart + r.ConsumerName + ":" + time.Unix(s.mu.created, 0).UTC().Format("20060102150405"),
	}
	st.consumers = append(st.consumers, c)
	return registerStreamConsumerAnswer{c.wire(nil, now)}, nil
}

type describeStreamConsumer struct{ consumerRef }

type describeStreamConsumerAnswer struct{ ConsumerDescription wireConsumer }

func (r *describeStreamConsumer) serve(s *Server) (any, error) {
	st, c, err := s.consumer(r.consumerRef)
	if err != nil {
		return nil, err
	}
	return describeStreamConsumerAnswer{c.wire(st, s.clock.Now())}, nil
}

type deregisterStreamConsumer struct{ consumerRef }

func (r *deregisterStreamConsumer) serve(s *Server) (any, error) {
	st, c, err := s.consumer(r.consumerRef)
	if err != nil {
		return nil, err
	}
	if !s.options.Unlimited && !st.registrations.admit(s.clock.Now(), 0, consumerCalls, 0) {
		return nil, fail(limitExceeded, "stream %s: more than %d changes of consumers within a second", st.name, consumerCalls)
	}
	c.gone = true
	for _, sub := range c.subs {
		sub.shard.wake()
	}
	st.consumers = slices.DeleteFunc(slices.Clone(st.consumers), func(o *consumer) bool { return o == c })
	return nil, nil
}

type listStreamConsumers struct {
	StreamARN  string
	MaxResults *int
	NextToken  *string
}

func (r *listStreamConsumers) target(*Server) Target { return Target{Stream: nameOfARN(r.StreamARN)} }

type listStreamConsumersAnswer struct {
	Consumers []wireConsumer
	NextToken *string `json:",omitempty"`
}

// consumerPlace is what the token of a page of consumers says.
type consumerPlace struct {
	Stream string
	After  string // name
	Issued int64  // in nanoseconds
}

const consumersPurpose = "consumers"

func (r *listStreamConsumers) serve(s *Server) (any, error) {
	st, err := s.stream(streamRef{StreamARN: r.StreamARN})
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	limit := describeShards
	if r.MaxResults != nil {
		if *r.MaxResults < 1 || *r.MaxResults > listMost {
			return nil, fail(validation, "MaxResults %d: want 1 to %d", *r.MaxResults, listMost)
		}
		limit = *r.MaxResults
	}
	at := consumerPlace{Stream: st.name}
	if r.NextToken != nil {
		if !s.sealer.open(consumersPurpose, *r.NextToken, &at) || at.Stream != st.name {
			return nil, fail(invalidArgument, "NextToken %q is none of this server for stream %s", clip(*r.NextToken), st.name)
		}
		if now.Sub(time.Unix(0, at.Issued)) >= tokenLife {
			return nil, fail(expiredToken, "the NextToken was issued more than %s ago", tokenLife)
		}
	}
	ordered := slices.SortedFunc(slices.Values(st.consumers), func(a, b *consumer) int { return strings.Compare(a.name, b.name) })
	answer := &listStreamConsumersAnswer{Consumers: []wireConsumer{}}
	for _, c := range ordered {
		if c.name <= at.After {
			continue
		}
		if len(answer.Consumers) == limit {
			at.After, at.Issued = answer.Consumers[limit-1].ConsumerName, now.UnixNano()
			token := s.sealer.seal(consumersPurpose, at)
			answer.NextToken = &token
			break
		}
		answer.Consumers = append(answer.Consumers, c.wire(nil, now))
	}
	return answer, nil
}
