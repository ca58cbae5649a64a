package kinesisserver_test

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

var aboutLists = []statement{
	{"open shards divide the hash keys among themselves", func(t *testing.T, b *backend) error {
		name := b.stream(t, 3)
		return tiles(b.shards(t, name))
	}},
	{"pages of any size make the same list, in the order of ids", func(t *testing.T, b *backend) error {
		name := b.stream(t, 5)
		whole := ids(b.shards(t, name))
		if !slices.IsSorted(whole) {
			return fmt.Errorf("not in order: %v", whole)
		}
		var problems []error
		for _, size := range []int32{1, 2, 5, 100} {
			paged, _, err := b.pages(t, &kinesis.ListShardsInput{StreamName: &name, MaxResults: &size})
			problems = append(problems, err, want(fmt.Sprint("pages of ", size), ids(paged), whole))
		}
		return errors.Join(problems...)
	}},
	{"a list in pages keeps its filter", func(t *testing.T, b *backend) error {
		name := b.stream(t, 3)
		b.split(t, name, b.shards(t, name)[1])
		paged, _, err := b.pages(t, &kinesis.ListShardsInput{StreamName: &name, MaxResults: aws.Int32(1), ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}})
		return errors.Join(err, want("open shards", ids(paged), ids(b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}))))
	}},
	{"a list begins behind the shard that it is told", func(t *testing.T, b *backend) error {
		name := b.stream(t, 4)
		all := ids(b.shards(t, name))
		out, err := b.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: &name, ExclusiveStartShardId: &all[1]})
		if err != nil {
			return err
		}
		after := b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeAfterShardId, ShardId: &all[1]})
		return errors.Join(want("exclusive start", ids(out.Shards), all[2:]), want("AFTER_SHARD_ID", ids(after), all[2:]))
	}},
	{"AT_LATEST lists the open shards, FROM_TRIM_HORIZON all", func(t *testing.T, b *backend) error {
		name := b.stream(t, 2)
		before := b.shards(t, name)
		b.split(t, name, before[0])
		all := b.shards(t, name)
		open := b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
		from := b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeFromTrimHorizon})
		return errors.Join(want("all", len(all), 4), want("from trim horizon", ids(from), ids(all)), want("open", ids(open), ids(all)[1:]))
	}},
	{"AT_TRIM_HORIZON lists the shards that were open then", func(t *testing.T, b *backend) error {
		name := b.stream(t, 2)
		before := ids(b.shards(t, name))
		b.split(t, name, b.shards(t, name)[0])
		return want("shards", ids(b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeAtTrimHorizon})), before)
	}},
	{"FROM_TIMESTAMP of the beginning lists all shards", func(t *testing.T, b *backend) error {
		name := b.stream(t, 2)
		b.split(t, name, b.shards(t, name)[0])
		out, err := b.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			return err
		}
		from := b.shards(t, name, &types.ShardFilter{Type: types.ShardFilterTypeFromTimestamp, Timestamp: out.StreamDescriptionSummary.StreamCreationTimestamp})
		return want("shards", ids(from), ids(b.shards(t, name)))
	}},
}

func ids(shards []types.Shard) []string {
	var all []string
	for i := range shards {
		all = append(all, *shards[i].ShardId)
	}
	return all
}

// pages follows a list to its end, with the token alone in each follow-up.
func (b *backend) pages(t *testing.T, in *kinesis.ListShardsInput) (all []types.Shard, count int, err error) {
	const most = 100
	for count < most {
		out, err := b.ListShards(t.Context(), in)
		if err != nil {
			return all, count, err
		}
		count++
		all = append(all, out.Shards...)
		if out.NextToken == nil {
			return all, count, nil
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken, MaxResults: in.MaxResults}
	}
	return all, count, errors.New("the list does not end")
}

// tiles says whether shards cover each hash key once.
func tiles(shards []types.Shard) error {
	ranges := slices.SortedFunc(slices.Values(shards), func(a, b types.Shard) int {
		return number(*a.HashKeyRange.StartingHashKey).Cmp(number(*b.HashKeyRange.StartingHashKey))
	})
	next := new(big.Int)
	for i := range ranges {
		if got := number(*ranges[i].HashKeyRange.StartingHashKey); got.Cmp(next) != 0 {
			return fmt.Errorf("shard %s begins at %s, want %s", *ranges[i].ShardId, got, next)
		}
		next = new(big.Int).Add(number(*ranges[i].HashKeyRange.EndingHashKey), big.NewInt(1))
	}
	return want("the end", next, new(big.Int).Lsh(big.NewInt(1), 128))
}
