package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// missingFor is how long a topic may be missing before that is an error: brokers learn of a new topic one by one.
	missingFor = 5 * time.Second
	// endsWithin bounds the question for the ends of logs, which only the lag needs.
	endsWithin = time.Second
)

// start checks the added partitions against the cluster and hands them to the client, which by itself would read a topic that was
// created anew from the offset of the old one, and wait for a missing one for ever. When ctx ends it is called again.
func (f *fetcher) start(ctx context.Context) error {
	for len(f.starting) > 0 {
		problem := f.check(ctx)
		if problem == nil {
			f.learnEnds(ctx)
			f.consume()
			f.since = time.Time{}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if f.since.IsZero() {
			f.since = time.Now()
		}
		missing := errors.Is(problem, ErrTopicMissing)
		if !missing && !transient(problem) || missing && time.Since(f.since) > missingFor {
			return problem
		}
		f.log.warn("waiting for the cluster before reading", "reason", problem)
		if err := sleep(ctx, retryPause); err != nil {
			return err
		}
	}
	return nil
}

// check compares topic ids and looks for the partitions.
func (f *fetcher) check(ctx context.Context) error {
	var names []string
	for _, p := range f.starting {
		if !slices.Contains(names, p.Topic) {
			names = append(names, p.Topic)
		}
	}
	topics, err := f.cluster.topics(ctx, names)
	if err != nil {
		return err
	}
	for _, p := range f.starting {
		t := topics[p.Topic]
		_, exists := t.leaders[p.Partition]
		switch {
		case errors.Is(t.err, kerr.UnknownTopicOrPartition), t.err == nil && !exists:
			return topicMissing(p.Split, t.err)
		case t.err != nil:
			return topicError(t)
		case p.TopicID != [16]byte{} && t.id != [16]byte{} && p.TopicID != t.id:
			return replaced(p.Split, t.id)
		}
	}
	return nil
}

// learnEnds asks where the logs end, so that the lag is known before the first record. Without an answer it stays unknown
// until the first fetch that brings something.
func (f *fetcher) learnEnds(ctx context.Context) {
	var open []place
	for _, p := range f.starting {
		if p.Stop == NoStop {
			open = append(open, p.place())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	ends, err := f.cluster.offsets(ctx, open, askLatest, f.source.Isolation)
	if err != nil {
		return
	}
	for at, end := range ends {
		f.lag.learn(at.splitID(), end.offset)
	}
}

// consume hands the checked partitions to the client, except for those with nothing to read.
func (f *fetcher) consume() {
	var (
		offsets = make(map[string]map[int32]kgo.Offset)
		parked  = make(topicPartitions)
		paused  = make(topicPartitions)
		resumed = make(topicPartitions)
	)
	for _, p := range f.starting {
		at := p.place()
		if p.ended() {
			f.finish(p)
			continue
		}
		if f.parked[at] {
			delete(f.parked, at)
			parked.add(at)
		}
		if p.paused {
			paused.add(at)
		} else {
			resumed.add(at) // the client remembers a pause beyond the life of an assignment
		}
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = make(map[int32]kgo.Offset)
		}
		offsets[p.Topic][p.Partition] = kgo.NewOffset().At(p.Offset).WithEpoch(p.Epoch)
	}
	f.starting = nil
	if len(parked) > 0 {
		f.client.RemoveConsumePartitions(parked)
	}
	if len(paused) > 0 {
		f.client.PauseFetchPartitions(paused)
	}
	if len(resumed) > 0 {
		f.client.ResumeFetchPartitions(resumed)
	}
	if len(offsets) > 0 {
		f.client.AddConsumePartitions(offsets)
	}
}
