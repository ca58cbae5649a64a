package kinesistest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestWhatClientsPutIsWhatTheServerHolds(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2)
	const n = 20
	for i := range n {
		out, err := h.client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String(fmt.Sprint(i)), Data: fmt.Append(nil, i)})
		if err != nil {
			t.Fatal(err)
		}
		if len(*out.SequenceNumber) != 56 {
			t.Errorf("sequence number %s", *out.SequenceNumber)
		}
	}
	records, err := h.srv.Records("orders")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, r := range records {
		seen[string(r.Data)] = r.PartitionKey == string(r.Data) && r.Arrival.Equal(start)
	}
	for i := range n {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("record %d is not as it was put", i)
		}
	}
}

func TestARecordMayArriveWithoutKeyAndInThePast(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	if _, err := h.srv.Put("orders", kinesistest.Record{Data: []byte("x"), Arrival: start.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	r := h.page(h.iterator(kinesis.GetShardIteratorInput{})).Records[0]
	if r.PartitionKey != nil || !r.ApproximateArrivalTimestamp.Equal(start.Add(-time.Hour)) {
		t.Errorf("key %v, arrived %s", r.PartitionKey, r.ApproximateArrivalTimestamp)
	}
}

func TestTheServersTimeIsTheClocks(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.srv.Advance(42 * time.Second)
	out, err := h.client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := awsmiddleware.GetServerTime(out.ResultMetadata); !ok || !at.Equal(start.Add(42*time.Second).Truncate(time.Second)) {
		t.Errorf("the answer says that it is %s", at)
	}
	if at := out.StreamDescriptionSummary.StreamCreationTimestamp; !at.Equal(start) {
		t.Errorf("created %s", at)
	}
}

func TestChangesTakeTheControlTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{ControlTime: 10 * time.Second}, 1)
	state := func() types.StreamStatus {
		t.Helper()
		out, err := h.client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
		if err != nil {
			t.Fatal(err)
		}
		return out.StreamDescriptionSummary.StreamStatus
	}
	_, early := h.client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("orders")})
	isA[*types.ResourceInUseException](t, "list a stream that is being made", early)
	if got := state(); got != types.StreamStatusCreating {
		t.Error(got)
	}
	h.srv.Advance(10 * time.Second)
	scale := &kinesis.UpdateShardCountInput{StreamName: aws.String("orders"), TargetShardCount: aws.Int32(2), ScalingType: types.ScalingTypeUniformScaling}
	if _, err := h.client.UpdateShardCount(t.Context(), scale); err != nil {
		t.Fatal(err)
	}
	_, twice := h.client.UpdateShardCount(t.Context(), scale)
	isA[*types.ResourceInUseException](t, "scale a stream that is being scaled", twice)
	if got := state(); got != types.StreamStatusUpdating {
		t.Error(got)
	}
	if got := h.listed(nil); len(got) != 3 {
		t.Errorf("while it is updating: %v", got)
	}
	h.srv.Advance(10 * time.Second)
	if got := state(); got != types.StreamStatusActive {
		t.Error(got)
	}
}

func TestCallsAreCountedAndObserved(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		seen []kinesistest.Call
	)
	h := newHarness(t, kinesistest.Options{Observe: func(c kinesistest.Call) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, c)
	}}, 1)
	h.page(h.iterator(kinesis.GetShardIteratorInput{}))
	h.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Shard: first, Effect: kinesistest.Expire()})
	if _, err := h.tryPage(h.iterator(kinesis.GetShardIteratorInput{})); err == nil {
		t.Error("no error")
	}
	if n := h.srv.Calls("GetRecords"); n != 2 {
		t.Errorf("%d calls", n)
	}
	last := seen[len(seen)-1]
	want := kinesistest.Call{Operation: "GetRecords", Target: kinesistest.Target{Stream: "orders", Shard: first}, At: start, Error: "ExpiredIteratorException", Fault: "ExpiredIteratorException"}
	if len(seen) != 4 || last != want {
		t.Errorf("%d calls, the last %+v", len(seen), last)
	}
}

func TestDataBeyondTheBoundIsRefusedUntilSomeExpires(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{MaxBytes: 100}, 1)
	big := kinesistest.Record{PartitionKey: "k", Data: make([]byte, 60)}
	if _, err := h.srv.Put("orders", big); err != nil {
		t.Fatal(err)
	}
	_, err := h.client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("orders"), PartitionKey: aws.String("k"), Data: big.Data})
	isA[*types.LimitExceededException](t, "the second", err)
	h.srv.Advance(24 * time.Hour)
	if _, err := h.srv.Put("orders", big); err != nil {
		t.Errorf("after a day: %v", err)
	}
	if err := h.srv.DeleteStream("orders"); err != nil {
		t.Fatal(err)
	}
	if err := h.srv.CreateStream("orders", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.srv.Put("orders", big); err != nil {
		t.Errorf("after the stream was deleted: %v", err)
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	for _, c := range []struct {
		name, target, contentType, body, want string
	}{
		{"no target", "", "application/x-amz-json-1.1", "{}", "UnknownOperationException"},
		{"unknown operation", "Kinesis_20131202.Fly", "application/x-amz-json-1.1", "{}", "UnknownOperationException"},
		{"CBOR", "Kinesis_20131202.ListStreams", "application/x-amz-cbor-1.1", "\xa0", "option against CBOR"},
		{"half a body", "Kinesis_20131202.ListStreams", "application/x-amz-json-1.1", `{"Limit":`, "SerializationException"},
		{"a wrong type", "Kinesis_20131202.ListStreams", "application/x-amz-json-1.1", `{"Limit":"ten"}`, "SerializationException"},
		{"a wrong time", "Kinesis_20131202.GetShardIterator", "application/x-amz-json-1.1", `{"Timestamp":1e300}`, "want seconds since 1970"},
		{"a body without end", "Kinesis_20131202.ListStreams", "application/x-amz-json-1.1", strings.Repeat(" ", 21<<20), "ValidationException"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.srv.Endpoint(), strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Amz-Target", c.target)
			req.Header.Set("Content-Type", c.contentType)
			resp, err := h.srv.HTTPClient().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusBadRequest || !bytes.Contains(body, []byte(c.want)) {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}

func TestAServerRunsInABubbleWithTheBubblesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.New(kinesistest.Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		h := &harness{t, srv, srv.Client(once)}
		if err := srv.CreateStream("orders", 1); err != nil {
			t.Fatal(err)
		}
		h.put("a")
		it := h.iterator(kinesis.GetShardIteratorInput{})
		h.holds(h.page(it), "a")
		began := time.Now()
		time.Sleep(5 * time.Minute) //nolint:forbidigo // the clock of the bubble
		_, err = h.tryPage(it)
		isA[*types.ExpiredIteratorException](t, "after five minutes", err)

		arn := h.consumer("reader")
		sub := h.subscribe(arn, first, latestPosition)
		h.put("b")
		sub.expect("b")
		for range sub.events { // one every 5 s, and the end after five minutes
		}
		if took := time.Since(began); took != 10*time.Minute {
			t.Errorf("the subscription ended after %s", took-5*time.Minute)
		}
		if err := sub.out.Err(); err != nil {
			t.Error(err)
		}
		sub.out.Close()
	})
}
