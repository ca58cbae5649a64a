package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cluster asks a cluster for facts. It uses raw requests: the client's own helpers answer from a cache that is seconds old.
type cluster struct {
	client *kgo.Client
	login  string // as whom it asks, for errors
}

func (s *Source) ask(client *kgo.Client) cluster { return cluster{client, loginText(s.SASL)} }

// topic is what metadata says of one.
type topic struct {
	name     string
	id       [16]byte
	internal bool
	// leaders has the leader of each partition; -1 while it has none.
	leaders map[int32]int32
	// err is why the cluster does not describe the topic: it is missing, or the login may not see it.
	err error
}

// places lists the partitions in order.
func (t *topic) places() []place {
	all := make([]place, 0, len(t.leaders))
	for _, partition := range slices.Sorted(maps.Keys(t.leaders)) {
		all = append(all, place{t.name, partition})
	}
	return all
}

// topics describes the named topics, or all topics when names is nil. A topic that is missing is in the answer, with its error.
func (c cluster) topics(ctx context.Context, names []string) (map[string]*topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	if names == nil {
		req.Topics = nil
	}
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, unreachable(ctx, err, c.login)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, fmt.Errorf("kafka: metadata: %w", err)
	}
	found := make(map[string]*topic, len(resp.Topics))
	for i := range resp.Topics {
		if t := readTopic(&resp.Topics[i]); t.name != "" {
			found[t.name] = t
		}
	}
	for _, name := range names {
		if found[name] == nil {
			found[name] = &topic{name: name, err: kerr.UnknownTopicOrPartition}
		}
	}
	return found, nil
}

func readTopic(m *kmsg.MetadataResponseTopic) *topic {
	t := &topic{id: m.TopicID, internal: m.IsInternal, leaders: make(map[int32]int32, len(m.Partitions)), err: kerr.ErrorForCode(m.ErrorCode)}
	if m.Topic != nil {
		t.name = *m.Topic
	}
	for i := range m.Partitions {
		p := &m.Partitions[i]
		leader := p.Leader
		if p.ErrorCode != 0 {
			leader = -1 // an error of a partition in metadata is always about its leader
		}
		t.leaders[p.Partition] = leader
	}
	return t
}

// Symbolic timestamps of a ListOffsets request.
const (
	askLatest   = int64(-1)
	askEarliest = int64(-2)
)

// listed is the answer for one partition: an offset, -1 when no record is that young, and the leader epoch there.
type listed struct {
	offset int64
	epoch  int32
}

// offsets asks the leaders for an offset of each partition: the end, the start, or the first one at or after a time in
// milliseconds. The answer is complete, or an error that names partitions without one.
func (c cluster) offsets(ctx context.Context, places []place, timestamp int64, isolation Isolation) (map[place]listed, error) {
	answers, failures := c.list(ctx, places, timestamp, isolation)
	for _, p := range places {
		if _, ok := answers[p]; ok {
			continue
		}
		err := failures[p]
		if err == nil {
			err = kerr.LeaderNotAvailable
		}
		return nil, fmt.Errorf("kafka: list offsets: %d of %d partitions without an answer, such as %s: %w",
			len(places)-len(answers), len(places), p, err)
	}
	return answers, nil
}

// list is offsets for whoever can use an incomplete answer.
func (c cluster) list(ctx context.Context, places []place, timestamp int64, isolation Isolation) (answers map[place]listed, failures map[place]error) {
	answers = make(map[place]listed, len(places))
	failures = make(map[place]error)
	if len(places) == 0 {
		return answers, failures
	}
	for _, shard := range c.client.RequestSharded(ctx, listRequest(places, timestamp, isolation)) {
		if resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse); ok && shard.Err == nil {
			readListed(resp, answers, failures)
			continue
		}
		if shard.Err == nil {
			continue // no answer and no error: whoever needs the partitions misses them
		}
		if req, ok := shard.Req.(*kmsg.ListOffsetsRequest); ok {
			for p := range requested(req) {
				failures[p] = unreachable(ctx, shard.Err, c.login)
			}
		}
	}
	return answers, failures
}

func listRequest(places []place, timestamp int64, isolation Isolation) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = isolation.level()
	byTopic := make(map[string]int)
	for _, p := range places {
		i, ok := byTopic[p.topic]
		if !ok {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.topic
			i = len(req.Topics)
			byTopic[p.topic] = i
			req.Topics = append(req.Topics, t)
		}
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition = p.partition
		partition.CurrentLeaderEpoch = -1
		partition.Timestamp = timestamp
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, partition)
	}
	return req
}

func readListed(resp *kmsg.ListOffsetsResponse, answers map[place]listed, failures map[place]error) {
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			at := place{t.Topic, p.Partition}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				failures[at] = err
				continue
			}
			answers[at] = listed{p.Offset, p.LeaderEpoch}
		}
	}
}

// requested lists what a request asks for.
func requested(req *kmsg.ListOffsetsRequest) map[place]struct{} {
	all := make(map[place]struct{})
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			all[place{req.Topics[i].Topic, req.Topics[i].Partitions[j].Partition}] = struct{}{}
		}
	}
	return all
}
