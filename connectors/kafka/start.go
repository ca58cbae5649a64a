package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	// missingFor is how long a topic may be missing before that is an error: brokers learn of a new topic one by one.
	missingFor = 5 * time.Second
	// missingPause is the time between looks for one that is waited for longer than that.
	missingPause = 5 * time.Second
	// askWithin limits one question of the fetcher about topics, and one about the rest of a log.
	askWithin = 2 * time.Second
	// maxStrikes is how often in a row a partition may be refused by the broker although nothing is wrong with it.
	maxStrikes = 20
)

// start checks partitions that are to be read and hands them to the client, which by itself would read a topic that was created
// anew from the offset of the old one, and wait for a missing one for ever. Those that are not ready stay and are looked at
// again later; the others are read meanwhile. When ctx ends it is called again.
func (f *fetcher) start(ctx context.Context) error {
	if len(f.starting) == 0 || time.Now().Before(f.nextCheck) {
		return nil
	}
	f.nextCheck = time.Now().Add(retryPause)
	topics, err := f.topics(ctx, topicsOf(f.starting))
	if err != nil {
		return f.waitFor(ctx, err)
	}
	var present []*partition
	for _, p := range f.starting {
		switch ok, err := f.present(p, topics[p.Topic]); {
		case err != nil:
			return err
		case ok:
			present = append(present, p)
		}
	}
	f.countMissing()
	ready, err := f.settle(ctx, present)
	if err != nil {
		if ctx.Err() != nil {
			f.nextCheck = time.Time{} // it was interrupted, not answered
		}
		return err
	}
	for _, p := range ready {
		p.waiting = false
	}
	f.starting = slices.DeleteFunc(f.starting, func(p *partition) bool { return !p.waiting })
	if len(f.starting) == 0 {
		f.waits = ""
	}
	f.consume(ready)
	return nil
}

// topics asks for topics. A broker that does not answer holds up everything that is being read, so it is given little time; who
// asks again asks another one.
func (f *fetcher) topics(ctx context.Context, names []string) (map[string]*topic, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return f.cluster.topics(ctx, names)
}

// await puts p into the queue of start.
func (f *fetcher) await(p *partition) {
	p.waiting = true
	f.starting = append(f.starting, p)
}

// waitFor returns only errors that waiting does not cure, and the cause of ctx.
func (f *fetcher) waitFor(ctx context.Context, err error) error {
	if err := passing(ctx, err); err != nil {
		if ctx.Err() != nil {
			f.nextCheck = time.Time{}
		}
		return err
	}
	f.sayWaiting("reason", err)
	return nil
}

// sayWaiting logs why reading does not begin, once for each reason in a row.
func (f *fetcher) sayWaiting(args ...any) {
	if why := fmt.Sprint(args...); why != f.waits {
		f.waits = why
		f.log.warn("waiting for the cluster before reading", args...)
	}
}

// topicsOf lists the topics of partitions, each once.
func topicsOf(parts []*partition) []string {
	var names []string
	seen := make(map[string]bool)
	for _, p := range parts {
		if !seen[p.Topic] {
			seen[p.Topic] = true
			names = append(names, p.Topic)
		}
	}
	return names
}

// present looks for p in what the cluster says of its topic, and compares ids. A partition of a topic that was created anew is
// present when it may begin there.
func (f *fetcher) present(p *partition, t *topic) (bool, error) {
	_, exists := t.leaders[p.Partition]
	switch {
	case errors.Is(t.err, kerr.UnknownTopicOrPartition), errors.Is(t.err, kerr.UnknownTopicID), t.err == nil && !exists:
		return false, f.missing(p, t.err)
	case t.err != nil && kerr.IsRetriable(t.err):
		f.sayWaiting("topic", p.Topic, "reason", t.err)
		return false, nil
	case t.err != nil:
		return false, topicError(t)
	}
	p.missingSince, p.missingTold = time.Time{}, false
	if p.TopicID == [16]byte{} || t.id == [16]byte{} || p.TopicID == t.id {
		return true, nil
	}
	if f.source.OnRecreated != ContinueEarliest || p.Stop != NoStop {
		return false, replaced(p.Split, t.id)
	}
	p.newID = t.id
	return true, nil
}

// missing answers for how long a partition may be missing.
func (f *fetcher) missing(p *partition, cause error) error {
	if p.missingSince.IsZero() {
		p.missingSince = time.Now()
	}
	if time.Since(p.missingSince) < missingFor {
		return nil
	}
	if f.source.OnDeleted != Wait {
		return sdk.Fatal(topicMissing(p.Split, cause))
	}
	if !p.missingTold {
		p.missingTold = true
		f.log.warn("topic or partition is missing, its position is kept", "topic", p.Topic, "partition", p.Partition, "offset", p.Offset)
	}
	f.nextCheck = time.Now().Add(missingPause)
	return nil
}

func (f *fetcher) countMissing() {
	n := 0
	for _, p := range f.parts {
		if !p.missingSince.IsZero() {
			n++
		}
	}
	f.moved.missing.Set(float64(n))
}

// consume hands partitions to the client, except for those with nothing to read.
func (f *fetcher) consume(ready []*partition) {
	var (
		offsets = make(map[string]map[int32]kgo.Offset)
		parked  = make(topicPartitions)
		paused  = make(topicPartitions)
		resumed = make(topicPartitions)
	)
	for _, p := range ready {
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
