package kinesistest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func TestWhatIsPutIsReadShardByShard(t *testing.T) {
	t.Parallel()
	srv := kinesistest.Start(t, kinesistest.Options{Clock: kinesistest.NewClock(start), Unlimited: true})
	client := srv.Client()
	if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: aws.String("orders"), ShardCount: aws.Int32(2)}); err != nil {
		t.Fatal(err)
	}
	const n = 20
	for i := range n {
		out, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String(fmt.Sprint(i)), Data: fmt.Append(nil, i)})
		if err != nil {
			t.Fatal(err)
		}
		if len(*out.SequenceNumber) != 56 {
			t.Fatalf("sequence number %s", *out.SequenceNumber)
		}
	}
	shards, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, sh := range shards.Shards {
		it, err := client.GetShardIterator(t.Context(), &kinesis.GetShardIteratorInput{StreamName: aws.String("orders"), ShardId: sh.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			t.Fatal(err)
		}
		page, err := client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Records {
			if !page.Records[i].ApproximateArrivalTimestamp.Equal(start) {
				t.Errorf("arrived at %s", page.Records[i].ApproximateArrivalTimestamp)
			}
		}
		got += len(page.Records)
	}
	if len(shards.Shards) != 2 || got != n {
		t.Errorf("%d shards, %d records", len(shards.Shards), got)
	}
}
