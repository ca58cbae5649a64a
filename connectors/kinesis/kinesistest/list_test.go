package kinesistest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestFiltersByTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2)
	h.srv.Advance(time.Hour)
	h.split(first) // 0 closed at 1:00; 2 and 3
	h.srv.Advance(time.Hour)
	h.split(id(2)) // 2 closed at 2:00; 4 and 5
	h.srv.Advance(time.Hour)
	at := func(hours float64) *time.Time { return aws.Time(start.Add(time.Duration(hours * float64(time.Hour)))) }
	for _, c := range []struct {
		name   string
		filter types.ShardFilter
		want   []string
	}{
		{"at the beginning", types.ShardFilter{Type: types.ShardFilterTypeAtTimestamp, Timestamp: at(0)}, []string{id(0), id(1)}},
		{"at half past one", types.ShardFilter{Type: types.ShardFilterTypeAtTimestamp, Timestamp: at(1.5)}, []string{id(1), id(2), id(3)}},
		{"from half past one", types.ShardFilter{Type: types.ShardFilterTypeFromTimestamp, Timestamp: at(1.5)}, []string{id(1), id(2), id(3), id(4), id(5)}},
		{"from long ago", types.ShardFilter{Type: types.ShardFilterTypeFromTimestamp, Timestamp: at(-100)}, []string{id(0), id(1), id(2), id(3), id(4), id(5)}},
		{"at the horizon", types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon}, []string{id(0), id(1)}},
		{"at the tip", types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, []string{id(1), id(3), id(4), id(5)}},
		{"after one", types.ShardFilter{Type: types.ShardFilterTypeAfterShardId, ShardId: aws.String(id(3))}, []string{id(4), id(5)}},
	} {
		if got := h.listed(&c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	h.srv.Advance(22*time.Hour + 30*time.Minute) // the horizon is at half past one
	if got, want := h.listed(&types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon}), []string{id(1), id(2), id(3)}; !slices.Equal(got, want) {
		t.Errorf("at the horizon later: %v, want %v", got, want)
	}
	for name, filter := range map[string]*types.ShardFilter{
		"at a time before the horizon": {Type: types.ShardFilterTypeAtTimestamp, Timestamp: at(1)},
		"from the future":              {Type: types.ShardFilterTypeFromTimestamp, Timestamp: at(100)},
		"at no time":                   {Type: types.ShardFilterTypeAtTimestamp},
		"after nothing":                {Type: types.ShardFilterTypeAfterShardId},
		"at the tip of a time":         {Type: types.ShardFilterTypeAtLatest, Timestamp: at(2)},
	} {
		_, err := h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), ShardFilter: filter})
		isA[*types.InvalidArgumentException](t, name, err)
	}
}

func TestATokenLastsFiveMinutesAndGoesAlone(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 3)
	page, err := h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), MaxResults: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), NextToken: page.NextToken})
	isA[*types.InvalidArgumentException](t, "a token with a name", err)
	_, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: h.iterator(kinesis.GetShardIteratorInput{})})
	isA[*types.InvalidArgumentException](t, "an iterator as a token", err)
	h.srv.Advance(300*time.Second - time.Millisecond)
	rest, err := h.client.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: page.NextToken, MaxResults: aws.Int32(5)})
	if err != nil || !slices.Equal(idsOf(rest.Shards), []string{id(1), id(2)}) || rest.NextToken != nil {
		t.Errorf("%+v, %v", rest, err)
	}
	h.srv.Advance(time.Millisecond)
	_, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: page.NextToken})
	isA[*types.ExpiredNextTokenException](t, "after five minutes", err)

	page, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), MaxResults: aws.Int32(1)})
	if err := errors.Join(err, h.srv.DeleteStream("orders"), h.srv.CreateStream("orders", 3)); err != nil {
		t.Fatal(err)
	}
	_, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: page.NextToken})
	isA[*types.ResourceNotFoundException](t, "a token of the stream that was there before", err)
}

func TestAThousandShardsInPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2500)
	in := &kinesis.ListShardsInput{StreamName: aws.String("orders"), MaxResults: aws.Int32(10_000)}
	var sizes []int
	for {
		page, err := h.client.ListShards(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(page.Shards))
		if page.NextToken == nil {
			break
		}
		in = &kinesis.ListShardsInput{NextToken: page.NextToken}
	}
	if !slices.Equal(sizes, []int{1000, 1000, 500}) {
		t.Error(sizes)
	}
}

func TestTheOlderOperationsListToo(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 3)
	var all []string
	from := (*string)(nil)
	for {
		out, err := h.client.DescribeStream(t.Context(), &kinesis.DescribeStreamInput{StreamName: aws.String("orders"), Limit: aws.Int32(2), ExclusiveStartShardId: from})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, idsOf(out.StreamDescription.Shards)...)
		if !*out.StreamDescription.HasMoreShards {
			break
		}
		from = &all[len(all)-1]
	}
	if !slices.Equal(all, []string{id(0), id(1), id(2)}) {
		t.Error(all)
	}
	if err := h.srv.CreateStream("another", 1); err != nil {
		t.Fatal(err)
	}
	streams, err := h.client.ListStreams(t.Context(), &kinesis.ListStreamsInput{Limit: aws.Int32(1)})
	if err != nil || !slices.Equal(streams.StreamNames, []string{"another"}) || !*streams.HasMoreStreams {
		t.Errorf("%+v, %v", streams, err)
	}
	streams, err = h.client.ListStreams(t.Context(), &kinesis.ListStreamsInput{ExclusiveStartStreamName: aws.String("another")})
	if err != nil || !slices.Equal(streams.StreamNames, []string{"orders"}) || *streams.HasMoreStreams {
		t.Errorf("%+v, %v", streams, err)
	}
}
