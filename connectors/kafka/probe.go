package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/sdk"
)

// probeWithin bounds a probe beside the limit of its caller.
const probeWithin = 20 * time.Second

// Probe implements [sdk.Prober]: it logs in, looks for the topics and connects to the brokers that lead them, and says what is wrong
// in words: the address, the reason, what to do. A pattern may match nothing yet, unless the job has a stop.
func (s *Source) Probe(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return sdk.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	source := s.withDefaults()
	client, err := source.askingClient(len(source.Brokers) - 1) // each address once: whoever starts a job waits for this
	if err != nil {
		return err
	}
	defer client.Close()
	d := &discovery{source: source, owns: source.topicFilter()}
	c := source.ask(client)
	topics, err := d.topics(ctx, c, source.OnDeleted != Wait) // one that is waited for is no problem; the first discovery of a new job tells
	switch {
	case err == nil:
		return errors.Join(c.probeLeaders(ctx, topics), source.probeGroup(ctx, c))
	case errors.Is(err, ErrTopicMissing):
		return fmt.Errorf("%w (%s)", err, existing(ctx, c))
	case errors.Is(err, ErrUnreachable), errors.Is(err, ErrLogin):
		return fmt.Errorf("brokers %s: %w", strings.Join(source.Brokers, ", "), err)
	default:
		return err
	}
}

// probeGroup finds out that the login may not use the group that positions are committed to. Every other trouble with the group may pass.
func (s *Source) probeGroup(ctx context.Context, c cluster) error {
	if s.CommitGroup == "" {
		return nil
	}
	if _, err := c.committed(ctx, s.CommitGroup, nil); errors.Is(err, kerr.GroupAuthorizationFailed) {
		return fmt.Errorf("commit_group: %w", err)
	}
	return nil
}

// existing lists a few topics for somebody who misspelt one.
func existing(ctx context.Context, c cluster) string {
	const shown = 10
	all, err := c.topics(ctx, nil)
	if err != nil {
		return "the cluster does not list its topics"
	}
	maps.DeleteFunc(all, func(_ string, t *topic) bool { return t.internal || t.err != nil })
	names := slices.Sorted(maps.Keys(all))
	switch {
	case len(names) == 0:
		return "the cluster has no topics"
	case len(names) > shown:
		return fmt.Sprintf("the cluster has %d topics, such as %s", len(names), strings.Join(names[:shown], ", "))
	default:
		return "the cluster has " + strings.Join(names, ", ")
	}
}

// probeLeaders connects to the brokers that lead the topics. They advertise addresses of their own, which are often not reachable from
// here though the first address was. One that answers is enough: a broker may be down at the moment. For the same reason any other
// broker will do when none of them answers: the addresses are right then, and new leaders are on their way.
func (c cluster) probeLeaders(ctx context.Context, topics []*topic) error {
	leaders := make(map[int32]struct{})
	for _, t := range topics {
		for _, leader := range t.leaders {
			if leader >= 0 {
				leaders[leader] = struct{}{}
			}
		}
	}
	var problems []error
	for _, leader := range slices.Sorted(maps.Keys(leaders)) {
		_, err := c.client.Broker(int(leader)).Request(ctx, kmsg.NewPtrApiVersionsRequest())
		if err == nil {
			return nil
		}
		problems = append(problems, fmt.Errorf("broker %d, at the address it advertises: %w", leader, unreachable(ctx, err, c.login)))
	}
	if len(problems) > 0 && c.anyAnswers(ctx) {
		return nil
	}
	return errors.Join(problems...)
}

// anyAnswers asks all brokers at once, each at the address it advertises.
func (c cluster) anyAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	brokers := c.client.DiscoveredBrokers()
	answers := make(chan error, len(brokers))
	for _, b := range brokers {
		go func() {
			_, err := b.Request(ctx, kmsg.NewPtrApiVersionsRequest())
			answers <- err
		}()
	}
	for range brokers {
		if <-answers == nil {
			return true
		}
	}
	return false
}
