package kinesistest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestAnIteratorLastsFiveMinutesFromWhenItWasGiven(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("a")
	old := h.iterator(kinesis.GetShardIteratorInput{})
	h.srv.Advance(5*time.Minute - time.Millisecond)
	page := h.page(old)
	h.holds(page, "a")
	h.srv.Advance(time.Millisecond)
	_, err := h.tryPage(old)
	isA[*types.ExpiredIteratorException](t, "the old one", err)
	h.holds(h.page(page.NextShardIterator))
	h.srv.ExpireIterators()
	_, err = h.tryPage(page.NextShardIterator)
	isA[*types.ExpiredIteratorException](t, "after ExpireIterators", err)
	h.holds(h.page(h.iterator(kinesis.GetShardIteratorInput{})), "a")
}

func TestAShardGivesFivePagesInAnySecond(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2)
	it, other := h.iterator(kinesis.GetShardIteratorInput{}), h.iterator(kinesis.GetShardIteratorInput{ShardId: aws.String(id(1))})
	for range 5 {
		h.page(it)
		h.srv.Advance(199 * time.Millisecond)
	}
	_, err := h.tryPage(it)
	isA[*types.ProvisionedThroughputExceededException](t, "the sixth in 995 ms", err)
	h.page(other)
	h.srv.Advance(5 * time.Millisecond)
	h.page(it)
	_, err = h.tryPage(it)
	isA[*types.ProvisionedThroughputExceededException](t, "the sixth in 801 ms", err)
}

func TestAPageOfTenMegabytesBlocksItsShardForFiveSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	mega := strings.Repeat("x", 1<<20-1) // and a key of one byte
	h.put(mega, mega, mega, mega, mega, mega, mega, mega, mega, mega, mega, mega)
	page := h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	if len(page.Records) != 10 || *page.MillisBehindLatest < 1 {
		t.Errorf("%d records, %d ms behind", len(page.Records), *page.MillisBehindLatest)
	}
	h.srv.Advance(5*time.Second - time.Millisecond)
	_, err := h.tryPage(page.NextShardIterator)
	isA[*types.ProvisionedThroughputExceededException](t, "before five seconds", err)
	h.srv.Advance(time.Millisecond)
	page = h.page(page.NextShardIterator)
	if len(page.Records) != 2 || *page.MillisBehindLatest != 0 {
		t.Errorf("%d records, %d ms behind", len(page.Records), *page.MillisBehindLatest)
	}
	h.srv.Advance(time.Second - time.Millisecond)
	_, err = h.tryPage(page.NextShardIterator)
	isA[*types.ProvisionedThroughputExceededException](t, "within a second of 2 MiB", err)
	h.srv.Advance(time.Millisecond)
	h.page(page.NextShardIterator)
}

func TestARecordOfTenMegabytesIsAPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("small", strings.Repeat("x", 10<<20-1), "after")
	page := h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	h.holds(page, "small")
	h.srv.Advance(5 * time.Second)
	page = h.page(page.NextShardIterator)
	if len(page.Records) != 1 || len(page.Records[0].Data) != 10<<20-1 {
		t.Errorf("%d records", len(page.Records))
	}
	h.srv.Advance(5 * time.Second)
	h.holds(h.page(page.NextShardIterator), "after")
}

func TestUnlimitedLiftsTheLimitsOfASecond(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{Unlimited: true}, 1)
	for range 20 {
		h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	}
	for range 1001 {
		if _, err := h.client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String("k"), Data: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWritesBeyondTheLimitFailRecordByRecord(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	half := types.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: make([]byte, 1<<19)}
	in := &kinesis.PutRecordsInput{StreamName: aws.String("orders"), Records: []types.PutRecordsRequestEntry{half, half, {PartitionKey: aws.String("k"), Data: []byte("small")}}}
	out, err := h.client.PutRecords(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if *out.FailedRecordCount != 1 || aws.ToString(out.Records[1].ErrorCode) != "ProvisionedThroughputExceededException" || out.Records[2].SequenceNumber == nil {
		t.Errorf("%d failed: %+v", *out.FailedRecordCount, out.Records)
	}
	h.srv.Advance(time.Second)
	if _, err := h.client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String("k"), Data: half.Data}); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

func TestDataIsGoneAfterItsRetention(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	old := h.put("old")[0]
	h.srv.Advance(12 * time.Hour)
	h.put("new")
	lower, upper := h.split(first)
	h.srv.Advance(12 * time.Hour)
	h.holds(h.page(h.iterator(kinesis.GetShardIteratorInput{})), "new")
	after := h.iterator(kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeAfterSequenceNumber, StartingSequenceNumber: &old.SequenceNumber})
	h.holds(h.page(after), "new")
	if got := h.listed(nil); len(got) != 3 {
		t.Errorf("after a day: %v", got)
	}
	h.srv.Advance(12 * time.Hour)
	if got := h.listed(nil); len(got) != 2 || got[0] != lower || got[1] != upper {
		t.Errorf("after a day and a half: %v", got)
	}
	_, err := h.tryIterator(kinesis.GetShardIteratorInput{})
	isA[*types.ResourceNotFoundException](t, "an expired shard", err)
}

func TestAStreamMadeAnewIsAnotherOne(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	old := h.put("old")[0]
	it := h.iterator(kinesis.GetShardIteratorInput{})
	if err := h.srv.DeleteStream("orders"); err != nil {
		t.Fatal(err)
	}
	_, err := h.tryPage(it)
	isA[*types.ResourceNotFoundException](t, "while it is gone", err)
	h.srv.Advance(time.Millisecond)
	if err := h.srv.CreateStream("orders", 1); err != nil {
		t.Fatal(err)
	}
	h.put("new")
	_, err = h.tryPage(it)
	isA[*types.ResourceNotFoundException](t, "the old iterator", err)
	_, err = h.tryIterator(kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeAfterSequenceNumber, StartingSequenceNumber: &old.SequenceNumber})
	isA[*types.InvalidArgumentException](t, "the old number", err)
	_, err = h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders"), StreamCreationTimestamp: aws.Time(start.Add(-time.Second))})
	isA[*types.ResourceNotFoundException](t, "the one made a second earlier", err)
}

func TestTheEndOfAShardNamesItsChildren(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2)
	child, err := h.srv.Merge("orders", id(1), first)
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{first, id(1)} {
		page := h.page(h.iterator(kinesis.GetShardIteratorInput{ShardId: &parent}))
		if page.NextShardIterator != nil || len(page.ChildShards) != 1 || *page.ChildShards[0].ShardId != child || len(page.ChildShards[0].ParentShards) != 2 {
			t.Errorf("%s: iterator %v, children %+v", parent, page.NextShardIterator, page.ChildShards)
		}
	}
	tip := h.page(h.iterator(kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeLatest}))
	if len(tip.ChildShards) != 1 {
		t.Error("a LATEST iterator of a closed shard tells no children")
	}
}

func TestPagesOfAClosedShardEndWithTheLast(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	placed := h.put("a", "b", "c")
	h.split(first)
	it := h.iterator(kinesis.GetShardIteratorInput{ShardIteratorType: types.ShardIteratorTypeAfterSequenceNumber, StartingSequenceNumber: &placed[0].SequenceNumber})
	page, err := h.client.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	h.holds(page, "b")
	if page.NextShardIterator == nil || page.ChildShards != nil || *page.MillisBehindLatest != 1 { // the clock stands still, and it is behind nevertheless
		t.Errorf("with one record left: %+v", page)
	}
	page = h.page(page.NextShardIterator)
	if h.holds(page, "c"); page.NextShardIterator != nil || len(page.ChildShards) != 2 || *page.MillisBehindLatest != 0 {
		t.Errorf("the last page: %+v", page)
	}
}
