package kinesistest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

const first = "shardId-000000000000"

// harness is a server whose clock stands still, with a stream "orders" and a client that does not try again.
type harness struct {
	*testing.T
	srv    *kinesistest.Server
	client *kinesis.Client
}

func newHarness(t *testing.T, o kinesistest.Options, shards int) *harness {
	t.Helper()
	if o.Clock == nil {
		o.Clock = kinesistest.NewClock(start)
	}
	srv := kinesistest.Start(t, o)
	if err := srv.CreateStream("orders", shards); err != nil {
		t.Fatal(err)
	}
	return &harness{t, srv, srv.Client(once)}
}

func once(o *kinesis.Options) { o.RetryMaxAttempts = 1 }

// ownCodec gives a subscription an event-stream decoder of its own; see Server.Client.
func ownCodec(o *kinesis.Options) { o.Protocol = awsjson.New11(schemas.Kinesis_20131202) }

// put writes to the open shard that holds the lowest hash key.
func (h *harness) put(data ...string) []kinesistest.Record {
	h.Helper()
	var records []kinesistest.Record
	for _, d := range data {
		records = append(records, kinesistest.Record{PartitionKey: "k", ExplicitHashKey: "0", Data: []byte(d)})
	}
	placed, err := h.srv.Put("orders", records...)
	if err != nil {
		h.Fatal(err)
	}
	return placed
}

func (h *harness) tryIterator(in kinesis.GetShardIteratorInput) (*string, error) {
	if in.StreamName == nil {
		in.StreamName = aws.String("orders")
	}
	if in.ShardId == nil {
		in.ShardId = aws.String(first)
	}
	if in.ShardIteratorType == "" {
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	}
	out, err := h.client.GetShardIterator(h.Context(), &in)
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

func (h *harness) iterator(in kinesis.GetShardIteratorInput) *string {
	h.Helper()
	it, err := h.tryIterator(in)
	if err != nil {
		h.Fatal(err)
	}
	return it
}

func (h *harness) tryPage(it *string) (*kinesis.GetRecordsOutput, error) {
	return h.client.GetRecords(h.Context(), &kinesis.GetRecordsInput{ShardIterator: it})
}

func (h *harness) page(it *string) *kinesis.GetRecordsOutput {
	h.Helper()
	out, err := h.tryPage(it)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// holds fails the test unless a page has exactly this data.
func (h *harness) holds(page *kinesis.GetRecordsOutput, want ...string) {
	h.Helper()
	if got := dataOf(page.Records); !slices.Equal(got, want) {
		h.Errorf("the page holds %q, want %q", got, want)
	}
}

func (h *harness) split(shard string) (lower, upper string) {
	h.Helper()
	lower, upper, err := h.srv.Split("orders", shard)
	if err != nil {
		h.Fatal(err)
	}
	return lower, upper
}

// listed are the ids that ListShards answers in one page.
func (h *harness) listed(filter *types.ShardFilter) []string {
	h.Helper()
	out, err := h.client.ListShards(h.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), ShardFilter: filter})
	if err != nil {
		h.Fatal(err)
	}
	return idsOf(out.Shards)
}

func idsOf(shards []types.Shard) []string {
	ids := []string{}
	for i := range shards {
		ids = append(ids, *shards[i].ShardId)
	}
	return ids
}

func dataOf(records []types.Record) []string {
	data := []string{}
	for i := range records {
		data = append(data, string(records[i].Data))
	}
	return data
}

// isA fails the test unless an error is of the SDK's type E.
func isA[E error](t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[E](err); !ok {
		t.Errorf("%s: %v, want %T", what, err, *new(E))
	}
}

func hasCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	answered, ok := errors.AsType[smithy.APIError](err)
	if !ok || answered.ErrorCode() != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func id(n int) string { return fmt.Sprintf("shardId-%012d", n) }
