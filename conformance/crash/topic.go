package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopics makes both topics anew: a broker of somebody else's may hold them from an earlier run.
func createTopics(ctx context.Context, client *kgo.Client, partitions int) error {
	admin := kadm.NewClient(client)
	nodes, err := admin.ListBrokers(ctx)
	if err != nil {
		return err
	}
	replicas := int16(min(len(nodes), 3))
	for _, name := range []string{topic, outputTopic} {
		if _, err := admin.DeleteTopic(ctx, name); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		if _, err := admin.CreateTopic(ctx, int32(partitions), replicas, nil, name); err != nil {
			return err
		}
	}
	return nil
}

// settled returns when the markers of all transactions are in the log: a broker answers the end of a transaction earlier than that, and
// a job that stops at the latest committed record would stop before the last of them.
func settled(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		committed, err1 := admin.ListCommittedOffsets(ctx, topic)
		ends, err2 := admin.ListEndOffsets(ctx, topic)
		if err := errors.Join(err1, err2, committed.Error(), ends.Error()); err != nil {
			return err
		}
		same := true
		ends.Each(func(e kadm.ListedOffset) {
			c, ok := committed.Lookup(e.Topic, e.Partition)
			same = same && ok && c.Offset == e.Offset
		})
		if same {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
