package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopics makes both topics anew: a broker of somebody else's may hold them from an earlier run.
func createTopics(ctx context.Context, client *kgo.Client, partitions int) error {
	admin := kadm.NewClient(client)
	for _, name := range []string{topic, outputTopic} {
		if _, err := admin.DeleteTopic(ctx, name); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		if _, err := admin.CreateTopic(ctx, int32(partitions), 1, nil, name); err != nil {
			return err
		}
	}
	return nil
}
