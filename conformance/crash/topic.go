package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopic makes the topic anew: a broker of somebody else's may hold one from an earlier run.
func createTopic(ctx context.Context, client *kgo.Client, partitions int) error {
	admin := kadm.NewClient(client)
	if _, err := admin.DeleteTopic(ctx, topic); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return err
	}
	_, err := admin.CreateTopic(ctx, int32(partitions), 1, nil, topic)
	return err
}
