package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/penstock-dev/penstock/sdk"
)

// doubt is why the position of a partition has to be looked at before it is read on.
type doubt uint8

const (
	noDoubt    doubt = iota
	offLimits        // a broker said that the offset is not in the log
	divergent        // a broker said that the log was written anew below the offset
	otherTopic       // a broker does not know the topic by its id
)

// settle decides where partitions are read from: where they stood, if the log still holds that, and else where the policy says.
// Those that it returns are ready. Everything that is lost under [Fail] is one error.
func (f *fetcher) settle(ctx context.Context, present []*partition) (ready []*partition, err error) {
	found, err := f.bounds(ctx, present)
	if err != nil {
		return nil, err
	}
	var lost []error
	for _, p := range present {
		at := p.place()
		b := found.of(at)
		if !b.enough(p) {
			if err := found.failure(at); !transient(err) {
				return nil, err
			}
			continue
		}
		if b.end >= 0 && p.Stop == NoStop {
			f.lag.learn(p.id, b.end)
		}
		switch err := f.settleOne(p, b); {
		case err != nil:
			lost = append(lost, err)
		case p.strikes > maxStrikes:
			return nil, f.refused(p)
		default:
			ready = append(ready, p)
		}
	}
	return ready, joinSome(lost)
}

// settleOne moves p if it has to be. It returns what is lost when the policy does not allow that.
func (f *fetcher) settleOne(p *partition, b bounds) error {
	why := p.doubt
	p.doubt = noDoubt
	target := listed{-1, NoEpoch}
	var err error
	switch {
	case p.newID != [16]byte{}:
		f.moved.recreated(p, b.start)
		return f.move(p, listed{b.start, NoEpoch})
	case why == divergent:
		err = truncated(p.Split, p.loss)
		target = listed{p.loss.ResetTo, p.loss.ResetToEpoch}
	case b.start >= 0 && p.Offset < b.start:
		err = outOfRange(p.Split, b.start, b.last, kerr.OffsetOutOfRange)
		target = listed{b.start, NoEpoch}
	case why == offLimits && p.Offset > b.last:
		err = outOfRange(p.Split, b.start, b.last, kerr.OffsetOutOfRange)
		target = listed{b.last, NoEpoch}
	case why != noDoubt:
		p.strikes++ // the position is right: whoever refused it has not caught up
		return nil
	default:
		return nil
	}
	if f.source.OnLost == Fail {
		return err
	}
	if f.source.OnLost == ContinueLatest {
		target = listed{b.end, NoEpoch}
	}
	f.moved.lost(p, target.offset, err)
	return f.move(p, target)
}

// move sets the position, on this side and, by a chunk of its own, on the reader loop.
func (f *fetcher) move(p *partition, to listed) error {
	if p.newID != [16]byte{} {
		p.TopicID, p.newID = p.newID, [16]byte{}
		p.Start = to.offset
	}
	p.Offset, p.Epoch = to.offset, max(to.epoch, NoEpoch)
	if p.Stop != NoStop {
		p.Offset = min(p.Offset, p.Stop)
	}
	p.loss = nil
	f.moves = append(f.moves, moveTo(p))
	return nil
}

// refused is the error for a partition that brokers go on refusing.
func (f *fetcher) refused(p *partition) error {
	return &PartitionError{
		Topic: p.Topic, Partition: p.Partition, Offset: p.Offset,
		Problem: fmt.Sprintf("brokers refused it %d times, though its leader says that the log holds the offset", p.strikes),
		Remedy:  "the reader starts again; see the broker's log if it stays",
		Err:     kerr.OffsetNotAvailable,
	}
}

// joinSome joins errors, the first few of many.
func joinSome(errs []error) error {
	const shown = 20
	if more := len(errs) - shown; more > 0 {
		errs = append(slices.Clip(errs[:shown]), sdk.Fatal(fmt.Errorf("and %d more partitions", more)))
	}
	return errors.Join(errs...)
}

// setAside takes partitions in doubt out of the client, to be settled and read on. A topic whose id is not known any more has to be
// forgotten by the client as a whole.
func (f *fetcher) setAside() {
	removed := make(topicPartitions)
	purged := make(map[string]bool)
	for _, p := range f.parts {
		if p.doubt == noDoubt || p.waiting {
			continue
		}
		f.await(p)
		if p.doubt == otherTopic {
			purged[p.Topic] = true
		} else {
			removed.add(p.place())
		}
		if p.strikes == 0 {
			f.nextCheck = time.Time{}
		} else {
			f.nextCheck = time.Now().Add(retryPause)
		}
	}
	for topic := range purged {
		delete(removed, topic)
		f.client.PurgeTopicsFromClient(topic)
		for at := range f.parked {
			if at.topic == topic {
				delete(f.parked, at)
			}
		}
	}
	if len(removed) > 0 {
		f.client.RemoveConsumePartitions(removed)
	}
}
