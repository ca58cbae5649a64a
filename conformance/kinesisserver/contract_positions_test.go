package kinesisserver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

const (
	trimHorizon = types.ShardIteratorTypeTrimHorizon
	latest      = types.ShardIteratorTypeLatest
	atNumber    = types.ShardIteratorTypeAtSequenceNumber
	afterNumber = types.ShardIteratorTypeAfterSequenceNumber
	atTime      = types.ShardIteratorTypeAtTimestamp
)

// three is a stream of one shard with the records "a", "b" and "c", of which each came later than the one before.
func three(t *testing.T, b *backend) (stream string, shard *string, numbers []string, arrived []time.Time) {
	t.Helper()
	stream = b.stream(t, 1)
	for _, data := range []string{"a", "b", "c"} {
		out := b.put(t, stream, "k", data)
		shard, numbers = out.ShardId, append(numbers, *out.SequenceNumber)
		b.later(t, stream)
	}
	it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
	if err != nil {
		t.Fatal(err)
	}
	page, err := b.page(t, it, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Records {
		arrived = append(arrived, *page.Records[i].ApproximateArrivalTimestamp)
	}
	return stream, shard, numbers, arrived
}

var aboutPositions = []statement{
	{"reading begins at the oldest record, at a number, or behind one", func(t *testing.T, b *backend) error {
		stream, shard, numbers, _ := three(t, b)
		oldest, err := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
		at, err2 := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: atNumber, StartingSequenceNumber: &numbers[1]})
		after, err3 := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: afterNumber, StartingSequenceNumber: &numbers[1]})
		return errors.Join(err, err2, err3, want("oldest", oldest, []string{"a", "b", "c"}), want("at", at, []string{"b", "c"}), want("after", after, []string{"c"}))
	}},
	{"reading from the tip gives what comes after the iterator was made", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: latest})
		if err != nil {
			return err
		}
		b.put(t, stream, "k", "d")
		page, err := b.page(t, it, 1000)
		if err != nil {
			return err
		}
		return want("records", dataOf(page.Records), []string{"d"})
	}},
	{"reading from a time gives the records that arrived then or later", func(t *testing.T, b *backend) error {
		stream, shard, _, arrived := three(t, b)
		read := func(at time.Time) ([]string, error) {
			return b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: atTime, Timestamp: &at})
		}
		early, err := read(arrived[0].Add(-time.Hour))
		second, err2 := read(arrived[1])
		late, err3 := read(arrived[2].Add(time.Millisecond))
		return errors.Join(err, err2, err3, want("an hour before", early, []string{"a", "b", "c"}), want("at the second", second, []string{"b", "c"}), want("behind the last", late, []string{}))
	}},
	{"a time in the future is refused", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		_, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: atTime, Timestamp: aws.Time(time.Now().Add(time.Hour))})
		return wantCode("in an hour", err, "InvalidArgumentException")
	}},
	{"a position may be a number that no record has", func(t *testing.T, b *backend) error {
		stream, shard, _, _ := three(t, b)
		first := b.shards(t, stream)[0].SequenceNumberRange.StartingSequenceNumber
		got, err := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: afterNumber, StartingSequenceNumber: first})
		return errors.Join(err, want("records", got, []string{"a", "b", "c"}))
	}},
	{"the number of another shard is refused", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 2)
		out := b.put(t, stream, "k", "v")
		other := "shardId-000000000000"
		if other == *out.ShardId {
			other = "shardId-000000000001"
		}
		_, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: &other, ShardIteratorType: afterNumber, StartingSequenceNumber: out.SequenceNumber})
		return wantCode("its iterator", err, "InvalidArgumentException")
	}},
	{"an iterator that is none is refused", func(t *testing.T, b *backend) error {
		_, err := b.page(t, "AAAAAAAAAAHSywljv0zEgPX4NyKdZ5wryMzP9yALs8NeKbUjp1IxtZs1Sp", 10)
		return wantCode("its page", err, "InvalidArgumentException")
	}},
}
