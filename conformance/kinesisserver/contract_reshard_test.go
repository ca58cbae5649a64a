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

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
)

// split divides a shard into halves.
func (b *backend) split(t *testing.T, stream string, sh types.Shard) {
	t.Helper()
	middle := new(big.Int).Add(number(*sh.HashKeyRange.StartingHashKey), number(*sh.HashKeyRange.EndingHashKey))
	middle.Rsh(middle, 1)
	if _, err := b.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &stream, ShardToSplit: sh.ShardId, NewStartingHashKey: aws.String(middle.String())}); err != nil {
		t.Fatal(err)
	}
	kinesisserver.AwaitActive(t, b.Client, stream)
}

func (b *backend) scale(t *testing.T, stream string, shards int32) {
	t.Helper()
	if _, err := b.UpdateShardCount(t.Context(), &kinesis.UpdateShardCountInput{StreamName: &stream, TargetShardCount: &shards, ScalingType: types.ScalingTypeUniformScaling}); err != nil {
		t.Fatal(err)
	}
	kinesisserver.AwaitActive(t, b.Client, stream)
}

// drain reads a closed shard to its end.
func (b *backend) drain(t *testing.T, stream string, shard *string) (data []string, children []types.ChildShard, err error) {
	it, err := b.iterator(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: shard, ShardIteratorType: trimHorizon})
	if err != nil {
		return nil, nil, err
	}
	const most = 4 // pages; the end may come on one of its own
	for range most {
		page, err := b.page(t, it, 1000)
		if err != nil {
			return data, nil, err
		}
		data = append(data, dataOf(page.Records)...)
		if page.NextShardIterator == nil {
			return data, page.ChildShards, nil
		}
		it = *page.NextShardIterator
	}
	return data, nil, errors.New("the closed shard does not end")
}

var aboutResharding = []statement{
	{"a split closes its parent and names it in both children", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		parent := b.shards(t, stream)[0]
		b.split(t, stream, parent)
		all := b.shards(t, stream)
		if len(all) != 3 {
			return fmt.Errorf("%d shards", len(all))
		}
		return errors.Join(
			want("closed", all[0].SequenceNumberRange.EndingSequenceNumber != nil, true),
			want("first child's parent", aws.ToString(all[1].ParentShardId), *parent.ShardId),
			want("second child's parent", aws.ToString(all[2].ParentShardId), *parent.ShardId),
			want("no other parent", all[1].AdjacentParentShardId == nil && all[2].AdjacentParentShardId == nil, true),
			want("open", all[1].SequenceNumberRange.EndingSequenceNumber == nil && all[2].SequenceNumberRange.EndingSequenceNumber == nil, true),
			tiles(all[1:]))
	}},
	{"a closed shard gives its records and then its end with the children", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		b.put(t, stream, "k", "a")
		b.put(t, stream, "k", "b")
		parent := b.shards(t, stream)[0]
		b.split(t, stream, parent)
		data, children, err := b.drain(t, stream, parent.ShardId)
		if err != nil || len(children) != 2 {
			return fmt.Errorf("%d children, %w", len(children), err)
		}
		slices.SortFunc(children, func(a, b types.ChildShard) int {
			return number(*a.HashKeyRange.StartingHashKey).Cmp(number(*b.HashKeyRange.StartingHashKey))
		})
		return errors.Join(want("records", data, []string{"a", "b"}), want("parents", children[0].ParentShards, []string{*parent.ShardId}),
			want("first range", *children[0].HashKeyRange.StartingHashKey, *parent.HashKeyRange.StartingHashKey),
			want("last range", *children[1].HashKeyRange.EndingHashKey, *parent.HashKeyRange.EndingHashKey))
	}},
	{"an empty closed shard ends at once, with its children", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		parent := b.shards(t, stream)[0]
		b.split(t, stream, parent)
		data, children, err := b.drain(t, stream, parent.ShardId)
		return errors.Join(err, want("records", len(data), 0), want("children", len(children), 2))
	}},
	{"a merge closes two parents and names both", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 2)
		parents := b.shards(t, stream)
		if _, err := b.MergeShards(t.Context(), &kinesis.MergeShardsInput{StreamName: &stream, ShardToMerge: parents[0].ShardId, AdjacentShardToMerge: parents[1].ShardId}); err != nil {
			return err
		}
		kinesisserver.AwaitActive(t, b.Client, stream)
		all := b.shards(t, stream)
		_, children, err := b.drain(t, stream, parents[1].ShardId)
		if err != nil || len(all) != 3 || len(children) != 1 {
			return fmt.Errorf("%d shards, %d children, %w", len(all), len(children), err)
		}
		named := []string{aws.ToString(all[2].ParentShardId), aws.ToString(all[2].AdjacentParentShardId)}
		slices.Sort(named)
		hinted := slices.Sorted(slices.Values(children[0].ParentShards))
		return errors.Join(want("parents", named, ids(parents)), want("parents of the hint", hinted, ids(parents)), tiles(all[2:]))
	}},
	{"shards that are not neighbours do not merge", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 3)
		all := b.shards(t, stream)
		_, err := b.MergeShards(t.Context(), &kinesis.MergeShardsInput{StreamName: &stream, ShardToMerge: all[0].ShardId, AdjacentShardToMerge: all[2].ShardId})
		return wantCode("merge", err, "InvalidArgumentException")
	}},
	{"a shard is not split where it begins", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 2)
		sh := b.shards(t, stream)[1]
		_, outside := b.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamName: &stream, ShardToSplit: sh.ShardId, NewStartingHashKey: aws.String("0")})
		return wantCode("split", outside, "InvalidArgumentException")
	}},
	{"two shards become four and two again, with one lineage of eight", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 2)
		written := 0
		write := func() {
			for key := range 4 {
				b.put(t, stream, fmt.Sprint(key), fmt.Sprint(written))
				written++
			}
		}
		write()
		b.scale(t, stream, 4)
		write()
		b.scale(t, stream, 2)
		write()
		all := b.shards(t, stream)
		open := b.shards(t, stream, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest})
		read := 0
		for i := range all {
			data, err := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: all[i].ShardId, ShardIteratorType: trimHorizon})
			if err != nil {
				return err
			}
			read += len(data)
		}
		return errors.Join(want("shards", len(all), 8), want("open", len(open), 2), tiles(open), want("records", read, written))
	}},
	{"a closed shard's ending number is above those of its records", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		last := b.put(t, stream, "k", "a").SequenceNumber
		b.split(t, stream, b.shards(t, stream)[0])
		if ending := b.shards(t, stream)[0].SequenceNumberRange.EndingSequenceNumber; number(*ending).Cmp(number(*last)) < 0 {
			return fmt.Errorf("it ends at %s, below %s", *ending, *last)
		}
		return nil
	}},
	{"a closed shard's ending number is a position", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		b.put(t, stream, "k", "a")
		b.split(t, stream, b.shards(t, stream)[0])
		parent := b.shards(t, stream)[0]
		got, err := b.read(t, kinesis.GetShardIteratorInput{StreamName: &stream, ShardId: parent.ShardId, ShardIteratorType: afterNumber, StartingSequenceNumber: parent.SequenceNumberRange.EndingSequenceNumber})
		return errors.Join(err, want("records behind it", got, []string{}))
	}},
	{"a child's numbers are above its parent's", func(t *testing.T, b *backend) error {
		stream := b.stream(t, 1)
		before := b.put(t, stream, "k", "a").SequenceNumber
		b.split(t, stream, b.shards(t, stream)[0])
		if after := b.put(t, stream, "k", "b").SequenceNumber; number(*after).Cmp(number(*before)) <= 0 {
			return fmt.Errorf("%s follows %s", *after, *before)
		}
		return nil
	}},
}
