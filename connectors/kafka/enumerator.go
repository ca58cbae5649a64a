package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// discoveryTimeout bounds one round: three sets of requests to every leader.
const discoveryTimeout = 30 * time.Second

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	d := &discovery{source: s.withDefaults()}
	d.owns = d.source.topicFilter()
	return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{
		Discover:   d.round,
		Interval:   max(d.source.DiscoveryInterval, 0),
		Timeout:    discoveryTimeout,
		Bounded:    !d.source.Stop.IsZero(),
		Durable:    true,
		Identity:   d.source.identity(),
		Compatible: d.source.compatible,
		OnRemoved:  func(gone []sdk.SplitID) { warnRemoved(ctx.Logger(), gone) },
	})
}

// compatible lets the list of topics grow. Topics added to it are found by a discovery, so there has to be one: a bounded job, and one
// that does not look for more, made its last at its first start.
func (s *Source) compatible(stored, configured sdk.Attribute) bool {
	if stored.Name != topicsAttribute || !s.Stop.IsZero() || s.DiscoveryInterval == DiscoveryOff {
		return false
	}
	now := strings.Split(configured.Value, ",")
	for topic := range strings.SplitSeq(stored.Value, ",") {
		if !slices.Contains(now, topic) {
			return false
		}
	}
	return true
}

const topicsAttribute = "topics"

// identity is what saved state depends on. The brokers may change, and so may the start, which was resolved long ago.
func (s *Source) identity() []sdk.Attribute {
	topics := sdk.Attribute{Name: topicsAttribute, Value: strings.Join(slices.Sorted(slices.Values(s.Topics)), ",")}
	if s.Pattern != "" {
		topics = sdk.Attribute{Name: "pattern", Value: s.Pattern}
	}
	return []sdk.Attribute{topics, {Name: "isolation", Value: s.Isolation.String()}, {Name: "stop", Value: s.Stop.String()}}
}

// warnRemoved says what the cluster no longer lists. The splits keep their position and go on when they are listed again.
func warnRemoved(log *slog.Logger, gone []sdk.SplitID) {
	const shown = 10
	log.Warn("partitions are no longer listed by the cluster; their positions are kept",
		"count", len(gone), "partitions", gone[:min(len(gone), shown)])
}

// discovery is the immutable input of discovery rounds, which run on workers.
type discovery struct {
	source Source
	owns   func(topic string) bool
}

// round lists the partitions that exist now. Those not known come with resolved positions.
func (d *discovery) round(ctx context.Context, round base.Round) ([]Split, error) {
	client, err := d.source.askingClient(discoveryRetries)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	cluster := d.source.ask(client)
	topics, err := d.topics(ctx, cluster, round.First)
	if err != nil {
		return nil, err
	}
	if err := d.deleted(ctx, cluster, round, topics); err != nil {
		return nil, err
	}
	var (
		splits []Split
		fresh  []place
		ids    = make(map[string][16]byte, len(topics))
	)
	for _, t := range topics {
		ids[t.name] = t.id
		for _, p := range t.places() {
			if round.Known(p.splitID()) {
				splits = append(splits, Split{Topic: p.topic, TopicID: t.id, Partition: p.partition, Epoch: NoEpoch, Stop: NoStop})
				continue
			}
			fresh = append(fresh, p)
		}
	}
	start, stop := d.source.Start, d.source.Stop
	if !round.First {
		start = Earliest() // what appeared after the job began is new data, all of it
	}
	found, err := resolver{cluster, d.source.Isolation}.splits(ctx, fresh, ids, start, stop)
	if err != nil {
		return nil, err
	}
	return append(splits, found...), nil
}

// topics returns the source's topics by name. In the first round every topic that was named must exist: what is missing
// then is most likely misspelt. Later it may be missing for a while: the base keeps what it knows, and deleted decides.
func (d *discovery) topics(ctx context.Context, c cluster, first bool) ([]*topic, error) {
	var names []string // nil asks for all
	if d.source.Pattern == "" {
		names = d.source.Topics
	}
	found, err := c.topics(ctx, names)
	if err != nil {
		return nil, err
	}
	var (
		chosen   []*topic
		problems []error
	)
	for _, t := range found {
		switch {
		case !d.owns(t.name) || t.internal && d.source.Pattern != "":
		case t.err != nil && (first || !errors.Is(topicError(t), ErrTopicMissing)):
			problems = append(problems, topicError(t))
		case t.err == nil:
			chosen = append(chosen, t)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(chosen) == 0 && !d.source.Stop.IsZero() {
		return nil, fmt.Errorf("%w: no topic matches the pattern %q: a job with a stop would end having read nothing", ErrTopicMissing, d.source.Pattern)
	}
	slices.SortFunc(chosen, func(a, b *topic) int { return cmp.Compare(a.name, b.name) })
	return chosen, nil
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}
