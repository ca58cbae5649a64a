package kinesisserver_test

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

var aboutStreams = []statement{
	{"a stream is described with its shards and the time it was made", func(t *testing.T, b *backend) error {
		name := b.stream(t, 3)
		out, err := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			return err
		}
		d := out.StreamDescriptionSummary
		if age := time.Since(*d.StreamCreationTimestamp); age < -2*time.Second || age > time.Hour {
			return fmt.Errorf("created %s ago", age)
		}
		server, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
		if off := time.Since(server); !ok || off < -2*time.Second || off > time.Minute {
			return fmt.Errorf("the answer says that it is %s", server)
		}
		return errors.Join(
			want("status", d.StreamStatus, types.StreamStatusActive),
			want("open shards", *d.OpenShardCount, 3),
			want("retention", *d.RetentionPeriodHours, 24))
	}},
	{"a stream can be named by its ARN", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		out, err := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			return err
		}
		again, err := b.ListShards(t.Context(), &kinesis.ListShardsInput{StreamARN: out.StreamDescriptionSummary.StreamARN})
		if err != nil {
			return err
		}
		return want("shards", len(again.Shards), 1)
	}},
	{"a stream that scales itself begins with four shards", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1) + "-od"
		if _, err := b.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}); err != nil {
			return err
		}
		if err := kinesis.NewStreamExistsWaiter(b.Client, func(o *kinesis.StreamExistsWaiterOptions) { o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second }).
			Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: &name}, time.Minute); err != nil {
			return err
		}
		return want("shards", len(b.shards(t, name)), 4)
	}},
	{"a stream that is there, or is not, answers by its type", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		_, err := b.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: aws.Int32(1)})
		_, missing := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(name + "-not")})
		_, shard := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &name, ShardId: aws.String("shardId-000000000007"), ShardIteratorType: types.ShardIteratorTypeLatest})
		return errors.Join(wantCode("create again", err, "ResourceInUseException"), wantCode("describe", missing, "ResourceNotFoundException"),
			wantCode("shard", shard, "ResourceNotFoundException"))
	}},
	{"a stream that was deleted is not found", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		if _, err := b.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: &name}); err != nil {
			return err
		}
		if err := kinesis.NewStreamNotExistsWaiter(b.Client, func(o *kinesis.StreamNotExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
		}).
			Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: &name}, time.Minute); err != nil {
			return err
		}
		_, err := b.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &name})
		return wantCode("list", err, "ResourceNotFoundException")
	}},
	{"retention grows and shrinks within a day and a year", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		if _, err := b.IncreaseStreamRetentionPeriod(t.Context(), &kinesis.IncreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: aws.Int32(48)}); err != nil {
			return err
		}
		_, short := b.DecreaseStreamRetentionPeriod(t.Context(), &kinesis.DecreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: aws.Int32(12)})
		if _, err := b.DecreaseStreamRetentionPeriod(t.Context(), &kinesis.DecreaseStreamRetentionPeriodInput{StreamName: &name, RetentionPeriodHours: aws.Int32(24)}); err != nil {
			return err
		}
		if short == nil {
			return errors.New("twelve hours are taken")
		}
		return nil
	}},
	{"records go where their key's MD5 or their hash key says, in the order of their numbers", func(t *testing.T, b *backend) error {
		name := b.stream(t, 3)
		shards := b.shards(t, name)
		var problems []error
		last := make(map[string]*big.Int)
		for i := range 12 {
			key := fmt.Sprint("key ", i)
			in := &kinesis.PutRecordInput{StreamName: &name, PartitionKey: &key, Data: []byte{byte(i)}}
			sum := md5.Sum([]byte(key))
			at := new(big.Int).SetBytes(sum[:])
			if i%3 == 0 {
				at.Sub(at, big.NewInt(0)).Rsh(at, uint(i))
				in.ExplicitHashKey = aws.String(at.String())
			}
			out, err := b.PutRecord(t.Context(), in)
			if err != nil {
				return err
			}
			owner := slices.IndexFunc(shards, func(sh types.Shard) bool { return holds(sh, at) })
			n := number(*out.SequenceNumber)
			if before := last[*out.ShardId]; before != nil && n.Cmp(before) <= 0 {
				problems = append(problems, fmt.Errorf("number %s follows %s", n, before))
			}
			last[*out.ShardId] = n
			problems = append(problems, want("shard", *out.ShardId, *shards[owner].ShardId), want("digits", len(*out.SequenceNumber), 56))
		}
		return errors.Join(problems...)
	}},
	{"PutRecords answers record by record", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		in := &kinesis.PutRecordsInput{StreamName: &name}
		for i := range 3 {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: fmt.Append(nil, i)})
		}
		out, err := b.PutRecords(t.Context(), in)
		if err != nil {
			return err
		}
		ascending := slices.IsSortedFunc(out.Records, func(a, b types.PutRecordsResultEntry) int {
			return number(*a.SequenceNumber).Cmp(number(*b.SequenceNumber))
		})
		got, err := b.read(t, kinesis.GetShardIteratorInput{StreamName: &name, ShardId: out.Records[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		return errors.Join(err, want("answers", len(out.Records), 3), want("ascending", ascending, true), want("failed", *out.FailedRecordCount, 0), want("records", got, []string{"0", "1", "2"}))
	}},
	{"a PutRecords call of more than 500 records is refused", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		entry := types.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: []byte("v")}
		_, err := b.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: &name, Records: slices.Repeat([]types.PutRecordsRequestEntry{entry}, 501)})
		return wantCode("501 records", err, "ValidationException")
	}},
	{"a record of more than 1 MiB is refused", func(t *testing.T, b *backend) error {
		name := b.stream(t, 1)
		_, err := b.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &name, PartitionKey: aws.String("k"), Data: bytes.Repeat([]byte{1}, 1<<20+1)})
		if err == nil {
			return errors.New("it is taken")
		}
		return nil
	}},
}

func number(s string) *big.Int {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

// holds reports that a hash key lies in the range of a shard.
func holds(sh types.Shard, key *big.Int) bool {
	return key.Cmp(number(*sh.HashKeyRange.StartingHashKey)) >= 0 && key.Cmp(number(*sh.HashKeyRange.EndingHashKey)) <= 0
}
