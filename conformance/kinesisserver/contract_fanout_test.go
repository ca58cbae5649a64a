package kinesisserver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// consumer registers one and waits until it is active.
func (b *backend) consumer(t *testing.T, stream, name string) (streamARN, arn *string) {
	t.Helper()
	d, err := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &stream})
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: d.StreamDescriptionSummary.StreamARN, ConsumerName: &name})
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		state, err := b.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{ConsumerARN: out.Consumer.ConsumerARN})
		if err != nil {
			t.Fatal(err)
		}
		if state.ConsumerDescription.ConsumerStatus == types.ConsumerStatusActive {
			return d.StreamDescriptionSummary.StreamARN, out.Consumer.ConsumerARN
		}
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("the consumer does not become active")
		}
	}
}

// subscribe opens a subscription that the end of the test closes.
func (b *backend) subscribe(t *testing.T, arn, shard *string, from types.StartingPosition) (<-chan types.SubscribeToShardEventStream, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	out, err := b.SubscribeToShard(ctx, &kinesis.SubscribeToShardInput{ConsumerARN: arn, ShardId: shard, StartingPosition: &from}, ownCodec)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = out.GetStream().Close() })
	return out.GetStream().Events(), nil
}

// ownCodec gives a subscription an event-stream decoder of its own: subscriptions of one client share one otherwise, which is a data race in smithy-go v1.28.9.
func ownCodec(o *kinesis.Options) { o.Protocol = awsjson.New11(schemas.Kinesis_20131202) }

// until collects data until there are n records or the shard ends, and returns the last event.
func until(events <-chan types.SubscribeToShardEventStream, n int) (data []string, last types.SubscribeToShardEvent, err error) {
	for event := range events {
		e, ok := event.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
		if !ok {
			return data, last, fmt.Errorf("event %T", event)
		}
		last = e.Value
		data = append(data, dataOf(last.Records)...)
		if len(data) >= n || last.ContinuationSequenceNumber == nil {
			return data, last, nil
		}
	}
	return data, last, errors.New("the events end")
}

var aboutFanOut = []statement{
	{"a consumer is registered once, found, listed and removed", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		streamARN, arn := b.consumer(t, stream, "reader")
		_, twice := b.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: streamARN, ConsumerName: aws.String("reader")})
		list, err := b.ListStreamConsumers(t.Context(), &kinesis.ListStreamConsumersInput{StreamARN: streamARN})
		if err != nil {
			return err
		}
		byName, err := b.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{StreamARN: streamARN, ConsumerName: aws.String("reader")})
		if err != nil {
			return err
		}
		_, err = b.DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{ConsumerARN: arn})
		return errors.Join(err, wantCode("register again", twice, "ResourceInUseException"), want("listed", len(list.Consumers), 1),
			want("found", *byName.ConsumerDescription.ConsumerARN, *arn))
	}},
	{"a consumer that is not registered is not found", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		d, err := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &stream})
		if err != nil {
			return err
		}
		_, err = b.DescribeStreamConsumer(t.Context(), &kinesis.DescribeStreamConsumerInput{StreamARN: d.StreamDescriptionSummary.StreamARN, ConsumerName: aws.String("nobody")})
		return wantCode("describe", err, "ResourceNotFoundException")
	}},
	{"a subscription delivers what is there, and then what comes", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		_, arn := b.consumer(t, stream, "reader")
		shard := b.put(t, stream, "k", "a").ShardId
		events, err := b.subscribe(t, arn, shard, types.StartingPosition{Type: trimHorizon})
		if err != nil {
			return err
		}
		there, _, err := until(events, 1)
		if err != nil {
			return err
		}
		b.put(t, stream, "k", "b")
		later, _, err := until(events, 1)
		return errors.Join(err, want("there", there, []string{"a"}), want("later", later, []string{"b"}))
	}},
	{"a subscription goes on at its continuation number without loss or repeats", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		shard := b.put(t, stream, "k", "a").ShardId
		_, first := b.consumer(t, stream, "first")
		events, err := b.subscribe(t, first, shard, types.StartingPosition{Type: trimHorizon})
		if err != nil {
			return err
		}
		_, last, err := until(events, 1)
		if err != nil {
			return err
		}
		b.put(t, stream, "k", "b")
		var problems []error
		for _, kind := range []types.ShardIteratorType{atNumber, afterNumber} {
			_, arn := b.consumer(t, stream, string(kind))
			events, err := b.subscribe(t, arn, shard, types.StartingPosition{Type: kind, SequenceNumber: last.ContinuationSequenceNumber})
			if err != nil {
				return err
			}
			data, _, err := until(events, 1)
			problems = append(problems, err, want(string(kind), data, []string{"b"}))
		}
		return errors.Join(problems...)
	}},
	{"a subscription to a closed shard ends with its children", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		_, arn := b.consumer(t, stream, "reader")
		parent := b.shards(t, stream)[0]
		b.put(t, stream, "k", "a")
		b.split(t, stream, parent)
		events, err := b.subscribe(t, arn, parent.ShardId, types.StartingPosition{Type: trimHorizon})
		if err != nil {
			return err
		}
		data, last, err := until(events, 2)
		return errors.Join(err, want("records", data, []string{"a"}), want("no continuation", last.ContinuationSequenceNumber == nil, true), want("children", len(last.ChildShards), 2))
	}},
	{"a second subscription within five seconds is refused", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		_, arn := b.consumer(t, stream, "reader")
		shard := b.shards(t, stream)[0].ShardId
		if _, err := b.subscribe(t, arn, shard, types.StartingPosition{Type: latest}); err != nil {
			return err
		}
		_, err := b.subscribe(t, arn, shard, types.StartingPosition{Type: latest})
		return wantCode("second", err, "ResourceInUseException")
	}},
}
