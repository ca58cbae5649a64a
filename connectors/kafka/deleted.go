package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// deletedPause is the time between looks for a topic that seems to be gone.
const deletedPause = 500 * time.Millisecond

// deleted looks for topics that are expected and not found, and reports those that the cluster goes on not to list for as long as
// missingFor, asked again and again, each time by whichever broker answers: one that lags behind, or a cluster that has just started,
// is no reason to fail. Under [Wait] nobody has to know.
func (d *discovery) deleted(ctx context.Context, c cluster, round base.Round, found []*topic) error {
	if round.First || d.source.OnDeleted == Wait {
		return nil
	}
	missing := d.expected(round)
	for _, t := range found {
		delete(missing, t.name)
	}
	for since := time.Now(); len(missing) > 0; {
		names := make([]string, 0, len(missing))
		for name := range missing {
			names = append(names, name)
		}
		topics, err := c.topics(ctx, names)
		if err != nil {
			return err
		}
		var gone []error
		slices.Sort(names)
		for _, name := range names {
			t := topics[name]
			if t.err == nil {
				delete(missing, name)
				continue
			}
			err := topicError(t)
			if !errors.Is(err, ErrTopicMissing) {
				return err
			}
			gone = append(gone, sdk.Fatal(topicDeleted(name, t.err)))
		}
		if len(gone) > 0 && time.Since(since) >= missingFor {
			return joinSome(gone)
		}
		if len(missing) > 0 {
			if err := sleep(ctx, deletedPause); err != nil {
				return err
			}
		}
	}
	return nil
}

// expected are the topics that must exist: those that are named, and those of which something is being read.
func (d *discovery) expected(round base.Round) map[string]bool {
	names := make(map[string]bool)
	for _, name := range d.source.Topics {
		names[name] = true
	}
	if round.Unfinished == nil {
		return names
	}
	for id := range round.Unfinished {
		if p, ok := placeOf(id); ok {
			names[p.topic] = true
		}
	}
	return names
}
