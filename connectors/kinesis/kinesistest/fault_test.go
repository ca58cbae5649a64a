package kinesistest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestErrorsHaveTheirTypes(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{Unlimited: true}, 1)
	it := h.iterator(kinesis.GetShardIteratorInput{})
	inject := func(e kinesistest.Effect) error {
		h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Effect: e})
		_, err := h.tryPage(it)
		return err
	}
	isA[*types.ProvisionedThroughputExceededException](t, "Throttle", inject(kinesistest.Throttle()))
	isA[*types.ExpiredIteratorException](t, "Expire", inject(kinesistest.Expire()))
	isA[*types.LimitExceededException](t, "LimitExceeded", inject(kinesistest.LimitExceeded()))
	isA[*types.ExpiredNextTokenException](t, "ExpireToken", inject(kinesistest.ExpireToken()))
	isA[*types.KMSThrottlingException](t, "Fail", inject(kinesistest.Fail("KMSThrottlingException", "injected")))
	hasCode(t, "InternalError", inject(kinesistest.InternalError()), "InternalFailure")
	h.page(it)
}

func TestAFaultSkipsHitsAndIsOver(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{Unlimited: true}, 2)
	its := []*string{h.iterator(kinesis.GetShardIteratorInput{}), h.iterator(kinesis.GetShardIteratorInput{ShardId: aws.String(id(1))})}
	fault := h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Stream: "orders", Shard: first, Skip: 2, Times: 3, Effect: kinesistest.Throttle()})
	second := h.srv.Inject(kinesistest.Fault{Shard: first, Effect: kinesistest.Expire()})
	var got []bool
	for range 7 {
		_, err := h.tryPage(its[0])
		got = append(got, err == nil)
		h.page(its[1])
	}
	// The second one hits what the first one skips, once.
	if want := []bool{false, true, false, false, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if fault.Hits() != 3 || second.Hits() != 1 {
		t.Errorf("%d and %d hits", fault.Hits(), second.Hits())
	}
	always := h.srv.Inject(kinesistest.Fault{Times: kinesistest.Always, Effect: kinesistest.Throttle()})
	for range 3 {
		if _, err := h.tryPage(its[0]); err == nil {
			t.Error("no error")
		}
	}
	always.Remove()
	always.Remove()
	h.page(its[0])
}

func TestBadConnections(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{Unlimited: true}, 1)
	put := func(e kinesistest.Effect) error {
		h.srv.Inject(kinesistest.Fault{Operation: "PutRecord", Effect: e})
		_, err := h.client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String("k"), Data: []byte("v")})
		return err
	}
	held := func() int {
		records, err := h.srv.Records("orders")
		if err != nil {
			t.Fatal(err)
		}
		return len(records)
	}
	if err := put(kinesistest.Reset()); err == nil || held() != 0 {
		t.Errorf("Reset: %v, %d records", err, held())
	}
	if err := put(kinesistest.LoseAnswer()); err == nil || held() != 1 {
		t.Errorf("LoseAnswer: %v, %d records", err, held())
	}
	if err := put(kinesistest.Cut()); err == nil || held() != 2 {
		t.Errorf("Cut: %v, %d records", err, held())
	}
}

func TestARequestHangsUntilTheClientGivesUpOrTheFaultIsRemoved(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("a")
	it := h.iterator(kinesis.GetShardIteratorInput{})
	fault := h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Times: kinesistest.Always, Effect: kinesistest.Hang()})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-fault.Reached()
		cancel()
	}()
	if _, err := h.client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it}); err == nil {
		t.Error("no error")
	}
	answered := make(chan error, 1)
	go func() {
		_, err := h.tryPage(it)
		answered <- err
	}()
	fault.Remove()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestADelayIsOfTheServersClock(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("a")
	it := h.iterator(kinesis.GetShardIteratorInput{})
	fault := h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Effect: kinesistest.Delay(time.Minute)})
	answered := make(chan error, 1)
	go func() {
		_, err := h.tryPage(it)
		answered <- err
	}()
	<-fault.Reached()
	select {
	case err := <-answered:
		t.Fatalf("answered too early: %v", err)
	default:
	}
	h.srv.Advance(2 * time.Minute) // also when the request reads the clock only now
	h.srv.Advance(2 * time.Minute)
	fault.Remove()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestOddPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{Unlimited: true}, 1)
	h.put("a", "b")
	inject := func(e kinesistest.Effect) { h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Effect: e}) }

	inject(kinesistest.EmptyPage(time.Hour))
	page := h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	if h.holds(page); *page.MillisBehindLatest != time.Hour.Milliseconds() {
		t.Errorf("%d ms behind", *page.MillisBehindLatest)
	}
	h.holds(h.page(page.NextShardIterator), "a", "b")

	inject(kinesistest.EndEarly())
	if page := h.page(h.iterator(kinesis.GetShardIteratorInput{})); page.NextShardIterator != nil || page.ChildShards != nil || len(page.Records) != 2 {
		t.Errorf("EndEarly: %+v", page)
	}
	inject(kinesistest.EmptyAnswer())
	if page := h.page(h.iterator(kinesis.GetShardIteratorInput{})); page.NextShardIterator != nil || page.Records != nil || page.MillisBehindLatest != nil {
		t.Errorf("EmptyAnswer: %+v", page)
	}
	inject(kinesistest.Rewrite(func(answer map[string]any) {
		for _, r := range answer["Records"].([]any) {
			delete(r.(map[string]any), "PartitionKey")
		}
	}))
	if page := h.page(h.iterator(kinesis.GetShardIteratorInput{})); page.Records[0].PartitionKey != nil || !page.Records[0].ApproximateArrivalTimestamp.Equal(start) {
		t.Errorf("Rewrite: %+v", page.Records[0])
	}

	h.split(first)
	inject(kinesistest.WithholdEnd())
	page = h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	if h.holds(page, "a", "b"); page.NextShardIterator == nil || page.ChildShards != nil {
		t.Fatalf("WithholdEnd: %+v", page)
	}
	page = h.page(page.NextShardIterator)
	if h.holds(page); page.NextShardIterator != nil || len(page.ChildShards) != 2 {
		t.Errorf("after WithholdEnd: %+v", page)
	}
	inject(kinesistest.OmitChildren())
	if page := h.page(h.iterator(kinesis.GetShardIteratorInput{})); page.NextShardIterator != nil || page.ChildShards != nil {
		t.Errorf("OmitChildren: %+v", page)
	}
}

func TestOddLists(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 4)
	stale := kinesistest.StaleList()
	inject := func(e kinesistest.Effect) { h.srv.Inject(kinesistest.Fault{Operation: "ListShards", Effect: e}) }
	open := &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}

	inject(stale)
	h.split(first)
	if got := h.listed(open); !slices.Equal(got, []string{id(0), id(1), id(2), id(3)}) {
		t.Errorf("StaleList: %v", got)
	}
	if got := h.listed(open); !slices.Equal(got, []string{id(1), id(2), id(3), id(4), id(5)}) {
		t.Errorf("after StaleList: %v", got)
	}
	inject(kinesistest.ParentsLookOpen())
	if got := h.listed(open); len(got) != 6 {
		t.Errorf("ParentsLookOpen: %v", got)
	}
	inject(kinesistest.OmitShards(id(1), id(5)))
	if got := h.listed(nil); !slices.Equal(got, []string{id(0), id(2), id(3), id(4)}) {
		t.Errorf("OmitShards: %v", got)
	}
	pages := func() (all []string) {
		in := &kinesis.ListShardsInput{StreamName: aws.String("orders"), MaxResults: aws.Int32(2)}
		for {
			page, err := h.client.ListShards(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, idsOf(page.Shards)...)
			if page.NextToken == nil {
				return all
			}
			in = &kinesis.ListShardsInput{NextToken: page.NextToken}
		}
	}
	inject(kinesistest.RepeatPage())
	if got := pages(); !slices.Equal(got, []string{id(0), id(1), id(0), id(1), id(2), id(3), id(4), id(5)}) {
		t.Errorf("RepeatPage: %v", got)
	}
	inject(kinesistest.SkipPage())
	if got := pages(); !slices.Equal(got, []string{id(0), id(1), id(4), id(5)}) {
		t.Errorf("SkipPage: %v", got)
	}
}
