package kafka

import (
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

func fetch(t *testing.T, f *fetcher) base.Fetched[[]int64] {
	t.Helper()
	got, err := f.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := base.Fetched[[]int64]{Finished: got.Finished}
	for _, c := range got.Chunks {
		var offsets []int64
		for _, r := range c.Elements {
			offsets = append(offsets, r.Offset)
		}
		out.Chunks = append(out.Chunks, base.Chunk[[]int64]{Split: c.Split, Elements: [][]int64{offsets}, Bytes: c.Bytes})
	}
	return out
}

func TestAFinishedPartitionIsFetchedNoMoreAndCanBeAddedAgain(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	split := splitsOf(t, s)[0]
	split.Stop = 4
	ctx := newLent()
	f, err := newFetcher(s.withDefaults(), ctx, newLag(ctx.Metrics()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	add := func(s Split) {
		t.Helper()
		if err := f.HandleSplits(base.Change[Split]{Added: []Split{s}}); err != nil {
			t.Fatal(err)
		}
	}
	add(split)
	got := fetch(t, f)
	if len(got.Chunks) != 1 || !slices.Equal(got.Chunks[0].Elements[0], count(4)) || !slices.Equal(got.Finished, []sdk.SplitID{"orders-0"}) {
		t.Fatalf("fetched %+v", got)
	}
	if paused := f.client.PauseFetchPartitions(nil); !slices.Equal(paused["orders"], []int32{0}) {
		t.Errorf("the client still fetches: paused are %v", paused)
	}
	split.Offset, split.Stop = 4, 6
	add(split)
	got = fetch(t, f)
	if len(got.Chunks) != 1 || !slices.Equal(got.Chunks[0].Elements[0], []int64{4, 5}) || len(got.Finished) != 1 {
		t.Fatalf("fetched %+v after it was added again", got)
	}
}

func TestARemovedSplitIsNotHandedOver(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	produce(t, b, numbered("orders", 1, 0, 5)...)
	s := sourceOf(b, "orders")
	ctx := newLent()
	f, err := newFetcher(s.withDefaults(), ctx, newLag(ctx.Metrics()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.HandleSplits(base.Change[Split]{Added: splitsOf(t, s)}); err != nil {
		t.Fatal(err)
	}
	if err := f.start(t.Context()); err != nil { // the client fetches from now on
		t.Fatal(err)
	}
	if err := f.HandleSplits(base.Change[Split]{Removed: []sdk.SplitID{"orders-0", "unknown-7"}}); err != nil {
		t.Fatal(err)
	}
	got := fetch(t, f)
	if len(got.Chunks) != 1 || got.Chunks[0].Split != "orders-1" {
		t.Fatalf("fetched %+v", got)
	}
}
