package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// franzDirect is the least that a program has to do: partitions assigned, nothing committed.
func franzDirect(ctx context.Context, broker string, want int, s *sum) error {
	offsets := make(map[int32]kgo.Offset)
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	return franz(ctx, want, s, kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topicName: offsets}))
}

// franzGroup is what most programs do: a group, and commits of what was polled before.
func franzGroup(ctx context.Context, broker string, want int, s *sum) error {
	return franz(ctx, want, s, kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(topicName),
		kgo.ConsumerGroup(groupName()), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(commitEvery))
}

func franz(ctx context.Context, want int, s *sum, options ...kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for s.records < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				s.add(r.Key, r.Value, len(r.Headers), r.Offset, r.Timestamp)
			}
		})
	}
	return nil
}
