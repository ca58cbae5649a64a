package kinesisserver_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

var aboutPages = []statement{
	{"a page holds no more than its limit, and the next one goes on", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		first, err := b.page(t, it, 2)
		if err != nil {
			return err
		}
		second, err := b.page(t, *first.NextShardIterator, 2)
		if err != nil {
			return err
		}
		return errors.Join(want("first", dataOf(first.Records), []string{"a", "b"}), want("second", dataOf(second.Records), []string{"c"}))
	}},
	{"an iterator gives the same page twice", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		first, err := b.page(t, it, 2)
		again, err2 := b.page(t, it, 2)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		return want("again", dataOf(again.Records), dataOf(first.Records))
	}},
	{"a limit above 10,000 is refused", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		if _, err := b.page(t, it, 10_001); err == nil {
			return errors.New("it is taken")
		}
		return nil
	}},
	{"a page says how far it is behind, and that it is not", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		part, err := b.page(t, it, 1)
		if err != nil {
			return err
		}
		rest, err := b.page(t, *part.NextShardIterator, 1000)
		if err != nil {
			return err
		}
		if *part.MillisBehindLatest <= 0 {
			return fmt.Errorf("with two records left: %d ms behind", *part.MillisBehindLatest)
		}
		return want("at the tip", *rest.MillisBehindLatest, 0)
	}},
	{"a record has its number, key and time", func(t *testing.T, b *backend) error {
		stream, shard, numbers, arrived := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		page, err := b.page(t, it, 1)
		if err != nil {
			return err
		}
		r := page.Records[0]
		return errors.Join(want("number", *r.SequenceNumber, numbers[0]), want("key", aws.ToString(r.PartitionKey), "k"), want("time is set", arrived[0].Unix() > 0, true))
	}},
	{"a shard gives at most five pages a second", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		shard := b.shards(t, stream)[0].ShardId
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		if err != nil {
			return err
		}
		// Six calls take longer than a second on a very slow machine; of twenty more than five fall into some second, unless each takes as long as it may.
		for range 20 {
			if _, err = b.page(t, it, 10); err != nil {
				break
			}
		}
		return wantCode("the sixth within a second", err, "ProvisionedThroughputExceededException")
	}},
}
