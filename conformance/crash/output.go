package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// markersWithin is how long the cluster may take to complete what the job committed last.
const markersWithin = 30 * time.Second

// verifyTopic reads the output topic as a consumer of committed records does, up to its end. No transaction may be open there any more:
// it would hide what comes behind it. Records of a partition must be in the order of their numbers.
func verifyTopic(ctx context.Context, brokers []string, partitions, records int) (report, error) {
	ends, err := decidedEnds(ctx, brokers)
	if err != nil {
		return report{}, err
	}
	from := make(map[int32]kgo.Offset)
	for p := range ends {
		from[p] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{outputTopic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return report{}, err
	}
	defer client.Close()
	v := newVerifier(partitions, records)
	last := make(map[int32]int)
	for len(ends) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return v.report, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= ends[r.Partition] {
				delete(ends, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			_, number, _ := strings.Cut(string(r.Value), "/")
			n, err := strconv.Atoi(number)
			if before, ok := last[r.Partition]; ok && err == nil && n <= before {
				v.disorder++
			}
			last[r.Partition] = n
			v.record(r.Partition, string(r.Value))
		})
	}
	return v.count(), nil
}

// decidedEnds waits until no transaction is open in the output topic, and returns where its partitions end, without empty ones.
func decidedEnds(ctx context.Context, brokers []string) (map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(markersWithin); ; {
		stable, err := admin.ListCommittedOffsets(ctx, outputTopic)
		if err != nil {
			return nil, err
		}
		ends, err := admin.ListEndOffsets(ctx, outputTopic)
		if err != nil {
			return nil, err
		}
		open, all := 0, make(map[int32]int64)
		ends.Each(func(o kadm.ListedOffset) {
			if decided, ok := stable.Lookup(o.Topic, o.Partition); !ok || decided.Offset < o.Offset {
				open++
			}
			if o.Offset > 0 {
				all[o.Partition] = o.Offset
			}
		})
		switch {
		case open == 0:
			return all, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%d partitions of topic %s end with an open transaction, although the job has ended", open, outputTopic)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
