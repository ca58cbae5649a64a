package kinesis

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// streamServer is what a test changes streams by, in the double or in the emulator.
type streamServer interface {
	CreateStream(name string, shards int) error
	DeleteStream(name string) error
	Put(stream string, records ...kinesistest.Record) ([]kinesistest.Record, error)
	Split(stream, shard string) (lower, upper string, err error)
	Merge(stream, shard, adjacent string) (child string, err error)
	Reshard(stream string, shards int) error
}

var (
	_ streamServer = (*kinesistest.Server)(nil)
	_ streamServer = remote{}
)

// onBoth runs a test in two worlds: one with the double, in a bubble, and one with kinesis-local, an emulator that others wrote, with the time on the wall. Such a
// test uses w.on and w.stream, and neither faults nor a clock that it can move.
func onBoth(t *testing.T, shards int, configure func(*Source), test func(w *world)) {
	t.Helper()
	t.Run("double", func(t *testing.T) {
		t.Parallel()
		inWorld(t, shards, configure, test)
	})
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		inEmulator(t, shards, configure, test)
	})
}

func inEmulator(t *testing.T, shards int, configure func(*Source), test func(w *world)) {
	t.Helper()
	srv := kinesisserver.Shared(t)
	stream := srv.CreateStream(t, "orders", int32(shards))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	client := srv.Client(func(o *aws.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	w := &world{t: t, wall: true, on: remote{t, client, 20 * time.Millisecond}, readers: 1, next: 1, source: &Source{
		Stream: stream, Region: "us-east-1", Credentials: Credentials{AccessKeyID: "kinesisserver", SecretAccessKey: "kinesisserver"},
		Endpoint: srv.Endpoint(), PollInterval: 200 * time.Millisecond, DiscoveryInterval: time.Second,
	}}
	if configure != nil {
		configure(w.source)
	}
	w.test(test)
}

// remote changes streams of a service that runs elsewhere, and waits until each change is done.
type remote struct {
	t      *testing.T
	client *aws.Client
	pace   time.Duration // between looks at whether it is
}

// changeWithin bounds a change, which takes an emulator 50 ms, and the service up to some minutes.
const changeWithin = 10 * time.Minute

func (r remote) CreateStream(name string, shards int) error {
	n := int32(shards)
	_, err := r.client.CreateStream(r.t.Context(), &aws.CreateStreamInput{StreamName: &name, ShardCount: &n})
	return r.settled(name, err)
}

func (r remote) DeleteStream(name string) error {
	if _, err := r.client.DeleteStream(r.t.Context(), &aws.DeleteStreamInput{StreamName: &name}); err != nil {
		return err
	}
	return aws.NewStreamNotExistsWaiter(r.client, func(o *aws.StreamNotExistsWaiterOptions) { o.MinDelay, o.MaxDelay = r.pace, 2*r.pace }).
		Wait(r.t.Context(), &aws.DescribeStreamInput{StreamName: &name}, changeWithin)
}

func (r remote) Put(stream string, records ...kinesistest.Record) ([]kinesistest.Record, error) {
	in := &aws.PutRecordsInput{StreamName: &stream}
	for i := range records {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: &records[i].PartitionKey, Data: records[i].Data, ExplicitHashKey: optional(records[i].ExplicitHashKey),
		})
	}
	out, err := r.client.PutRecords(r.t.Context(), in)
	if err != nil {
		return nil, err
	}
	for i, answer := range out.Records {
		if answer.ErrorCode != nil {
			return nil, fmt.Errorf("record %d: %s", i, *answer.ErrorCode)
		}
		records[i].Shard, records[i].SequenceNumber = *answer.ShardId, *answer.SequenceNumber
	}
	return records, nil
}

func (r remote) Split(stream, shard string) (lower, upper string, err error) {
	before, err := r.shards(stream)
	if err != nil {
		return "", "", err
	}
	for _, s := range before {
		if *s.ShardId != shard {
			continue
		}
		h := hashRange(s.HashKeyRange)
		h.Start[0] += (h.End[0]-h.Start[0])/2 + 1
		middle := *shardsOf([]lineage.HashRange{h})[0].HashKeyRange.StartingHashKey
		_, err = r.client.SplitShard(r.t.Context(), &aws.SplitShardInput{StreamName: &stream, ShardToSplit: &shard, NewStartingHashKey: &middle})
	}
	if err := r.settled(stream, err); err != nil {
		return "", "", err
	}
	children, err := r.shards(stream)
	if err != nil || len(children) != len(before)+2 {
		return "", "", fmt.Errorf("%d shards after the split of %s, error %w", len(children), shard, err)
	}
	return *children[len(before)].ShardId, *children[len(before)+1].ShardId, nil
}

func (r remote) Merge(stream, shard, adjacent string) (child string, err error) {
	_, err = r.client.MergeShards(r.t.Context(), &aws.MergeShardsInput{StreamName: &stream, ShardToMerge: &shard, AdjacentShardToMerge: &adjacent})
	if err := r.settled(stream, err); err != nil {
		return "", err
	}
	shards, err := r.shards(stream)
	if err != nil {
		return "", err
	}
	return *shards[len(shards)-1].ShardId, nil
}

func (r remote) Reshard(stream string, shards int) error {
	n := int32(shards)
	_, err := r.client.UpdateShardCount(r.t.Context(), &aws.UpdateShardCountInput{StreamName: &stream, TargetShardCount: &n, ScalingType: types.ScalingTypeUniformScaling})
	return r.settled(stream, err)
}

func (r remote) shards(stream string) ([]types.Shard, error) {
	out, err := r.client.ListShards(r.t.Context(), &aws.ListShardsInput{StreamName: &stream})
	if err != nil {
		return nil, err
	}
	return out.Shards, nil
}

// settled waits until a change that was accepted is done.
func (r remote) settled(stream string, err error) error {
	if err != nil {
		return err
	}
	return aws.NewStreamExistsWaiter(r.client, func(o *aws.StreamExistsWaiterOptions) { o.MinDelay, o.MaxDelay = r.pace, 2*r.pace }).
		Wait(r.t.Context(), &aws.DescribeStreamInput{StreamName: &stream}, changeWithin)
}

// forgetful is a client's connection that loses the answer to a request: the service has served it, and the client hears of an error.
type forgetful struct {
	http.RoundTripper
	lose func(operation string) bool
}

func (f forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.RoundTripper.RoundTrip(r)
	if err == nil && f.lose(r.Header.Get("X-Amz-Target")) {
		_ = answer.Body.Close()
		return nil, context.DeadlineExceeded
	}
	return answer, err
}
