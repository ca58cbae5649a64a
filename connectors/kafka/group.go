package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// committed asks for the offsets of a consumer group. Partitions for which it has none are missing in the answer.
func (c cluster) committed(ctx context.Context, group string, places []place) (map[place]listed, error) {
	found, err := kadm.NewClient(c.client).FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, c.groupError(ctx, group, err)
	}
	offsets := make(map[place]listed, len(places))
	for _, p := range places {
		at, ok := found.Lookup(p.topic, p.partition)
		switch {
		case !ok:
		case at.Err != nil:
			return nil, c.groupError(ctx, group, fmt.Errorf("%s: %w", p, at.Err))
		case at.At >= 0:
			offsets[p] = listed{at.At, max(at.LeaderEpoch, NoEpoch)}
		}
	}
	return offsets, nil
}

// commit stores the positions of splits as the offsets of a group that has no members.
func (c cluster) commit(ctx context.Context, group string, splits map[place]Split) error {
	offsets := make(kadm.Offsets)
	for _, s := range splits {
		offsets.Add(kadm.Offset{Topic: s.Topic, Partition: s.Partition, At: s.Offset, LeaderEpoch: s.Epoch})
	}
	answers, err := kadm.NewClient(c.client).CommitOffsets(ctx, group, offsets)
	if err == nil {
		err = answers.Error()
	}
	if err == nil {
		return nil
	}
	return c.groupError(ctx, group, err)
}

// groupError says what a group's error means to somebody who only reads or commits offsets.
func (c cluster) groupError(ctx context.Context, group string, err error) error {
	if !isKafkaError(err) || explainLogin(err) != nil {
		return fmt.Errorf("kafka: group %q: %w", group, unreachable(ctx, err, c.login))
	}
	remedy := "see the log of the group's coordinator"
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		remedy = "grant this login READ on the group"
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.RebalanceInProgress),
		errors.Is(err, kerr.StaleMemberEpoch), errors.Is(err, kerr.FencedMemberEpoch):
		remedy = "the group has members, which alone may commit: use a group of its own"
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		remedy = "grant this login READ on the topic"
	case errors.Is(err, kerr.InvalidGroupID), errors.Is(err, kerr.GroupIDNotFound):
		remedy = "check the name of the group"
	}
	return fmt.Errorf("%w: group %q (%s): %w: %s", ErrGroup, group, c.login, err, remedy)
}

func isKafkaError(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k)
}
