package kafka

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

func TestReaderKeepsNullAndEmptyAndHeadersAndTimes(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	at := time.UnixMilli(1_700_000_000_123)
	produce(t, b,
		&kgo.Record{Topic: "orders", Key: nil, Value: []byte("v"), Timestamp: at},
		&kgo.Record{Topic: "orders", Key: []byte{}, Value: nil},
		&kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte{}, Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "b", Value: []byte{}},
		}},
	)
	s := sourceOf(b, "orders")
	got := read(t, s, splitsOf(t, s)...).records(3)

	if got[0].Key != nil || string(got[0].Value) != "v" || !got[0].Time.Equal(at) || got[0].Headers != nil {
		t.Errorf("first record: %+v", got[0])
	}
	if got[1].Key == nil || len(got[1].Key) != 0 || got[1].Value != nil {
		t.Errorf("second record: key %v value %v, want an empty and a null one", got[1].Key, got[1].Value)
	}
	if string(got[2].Key) != "k" || got[2].Value == nil || len(got[2].Value) != 0 {
		t.Errorf("third record: key %v value %v", got[2].Key, got[2].Value)
	}
	want := []sdk.Header{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "b", Value: []byte{}}}
	same := slices.EqualFunc(got[2].Headers, want, func(a, b sdk.Header) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
	})
	if !same {
		t.Errorf("headers %v, want %v", got[2].Headers, want)
	}
	if r := got[2]; r.Split != "orders-0" || r.Topic != "orders" || r.Partition != 0 || r.Offset != 2 || r.Epoch < 0 {
		t.Errorf("place of the third record: %+v", r)
	}
}

func TestReaderGoesOnExactlyWhereASnapshotStood(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 200)...)
	s := sourceOf(b, "orders")
	first := read(t, s, splitsOf(t, s)...)
	first.records(70)
	n := len(first.out.records)
	at := first.snapshot()[place{"orders", 0}]
	if at.Offset != int64(n) || at.Epoch != first.out.records[n-1].Epoch || at.TopicID == [16]byte{} {
		t.Fatalf("after %d records the split is %+v", n, at)
	}
	got := read(t, s, at).records(200 - n)
	if got[0].Offset != int64(n) || len(got) != 200-n {
		t.Fatalf("restored reader began at %d and read %d", got[0].Offset, len(got))
	}
}

func TestReadCommittedLeavesOutAbortedAndOpenTransactions(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 2)...)         // 0 1
	transact(t, b, false, numbered("orders", 0, 2, 3)...) // 2 3 4, marker 5
	transact(t, b, true, numbered("orders", 0, 5, 2)...)  // 6 7, marker 8
	open := begin(t, b, numbered("orders", 0, 7, 1)...)   // 9
	produce(t, b, numbered("orders", 0, 8, 1)...)         // 10
	t.Cleanup(func() { _ = open.Abort(t.Context()) })     // the test is over then, whatever it answers
	for _, test := range []struct {
		isolation Isolation
		want      []int64
	}{
		{ReadCommitted, []int64{0, 1, 6, 7}},
		{ReadUncommitted, []int64{0, 1, 2, 3, 4, 6, 7, 9, 10}},
	} {
		t.Run(test.isolation.String(), func(t *testing.T) {
			s := sourceOf(b, "orders")
			s.Isolation, s.Stop = test.isolation, Latest()
			u := read(t, s, splitsOf(t, s)...)
			if got := offsetsOf(u.end()); !slices.Equal(got, test.want) {
				t.Errorf("read %v, want %v", got, test.want)
			}
		})
	}
}

func TestBoundedReadingEndsWhenOnlyMarkersAreLeft(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 3)...)
	transact(t, b, false, numbered("orders", 0, 3, 4)...)
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	u := read(t, s, splitsOf(t, s)...)
	if got := offsetsOf(u.end()); !slices.Equal(got, count(3)) {
		t.Fatalf("read %v", got)
	}
	if final := u.out.finished; len(final) != 1 || final[0].Stop != 8 || final[0].Offset != 8 {
		t.Fatalf("finished %+v, want one split at its stop 8", final)
	}
}

func TestBoundedReadingEndsWhenOnlyCompactedGapsAreLeft(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 3)...)
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	splits := splitsOf(t, s)
	splits[0].Stop = 3
	// A broker whose batches before the stop were emptied: it has nothing to deliver at 1 and 2, and its end is at the stop.
	hide := b.Cluster()
	hide.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		hide.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if len(req.Topics) == 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, rt := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				p := kmsg.NewFetchResponseTopicPartition()
				p.Partition, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = rp.Partition, 3, 3, 0
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	u := read(t, s, splits...)
	if got := u.end(); len(got) != 0 || len(u.out.finished) != 1 {
		t.Fatalf("read %d records, finished %v", len(got), u.out.finished)
	}
}

func TestBoundedReadingOfACompactedTopicEnds(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{})
	if err := b.CreateTopic("state", 1, map[string]string{"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		produce(t, b, &kgo.Record{Topic: "state", Key: []byte{byte(i % 2)}, Value: []byte{byte(i)}})
	}
	b.Cluster().Compact()
	s := sourceOf(b, "state")
	s.Stop = Latest()
	u := read(t, s, splitsOf(t, s)...)
	got := offsetsOf(u.end())
	if len(got) == 0 || len(got) == 6 || got[len(got)-1] != 5 {
		t.Fatalf("read %v, want what compaction left, up to 5", got)
	}
}

func TestSplitsWithNothingBeforeTheirStopFinishAtOnce(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 3}})
	produce(t, b, numbered("orders", 1, 0, 1)...)
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	u := read(t, s, splitsOf(t, s)...)
	if got := u.end(); len(got) != 1 || len(u.out.finished) != 3 {
		t.Fatalf("read %d records, finished %v", len(got), u.out.finished)
	}
	if left, ok := u.ctx.metrics.get(sdk.GaugePendingRecords); !ok || left != 0 {
		t.Errorf("pending records at the end: %v, present %t", left, ok)
	}
}

func TestBoundedReadingStopsBeforeTheStopOffset(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 100)...)
	s := sourceOf(b, "orders")
	s.Stop = Offsets(map[string]map[int32]int64{"orders": {0: 42}})
	if got := offsetsOf(read(t, s, splitsOf(t, s)...).end()); !slices.Equal(got, count(42)) {
		t.Fatalf("read %v", got)
	}
}

func TestReaderReadsPartitionsOfSeveralBrokersFairly(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 6}})
	for p := range int32(6) {
		produce(t, b, numbered("orders", p, 0, 2000)...)
	}
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	u := read(t, s, splitsOf(t, s)...)
	got := u.end()
	next := make(map[int32]int64)
	for _, r := range got {
		if r.Offset != next[r.Partition] {
			t.Fatalf("partition %d: offset %d after %d", r.Partition, r.Offset, next[r.Partition]-1)
		}
		next[r.Partition]++
	}
	if len(got) != 6*2000 || len(next) != 6 {
		t.Fatalf("read %d records of %d partitions", len(got), len(next))
	}
}

func TestOnePartitionWithLagDoesNotStarveAnotherOfItsBroker(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	const perBatch, batches = 50, 200
	for i := range batches {
		produce(t, b, numbered("orders", 0, i*perBatch, perBatch)...)
	}
	produce(t, b, numbered("orders", 1, 0, 1)...)
	s := sourceOf(b, "orders")
	s.FetchMaxPartitionBytes = 1 << 10 // about a batch
	u := read(t, s, splitsOf(t, s)...)
	seen := func() bool { return u.out.records != nil && u.out.records[len(u.out.records)-1].Partition == 1 }
	if _, err := u.until(func() bool {
		return seen() || slices.ContainsFunc(u.out.records, func(r sdk.Record) bool { return r.Partition == 1 })
	}); err != nil {
		t.Fatal(err)
	}
	// The first fetch is one batch, whoever it is of, and every other one holds both; but a slow machine may find the start of one
	// partition later than that of the other.
	if n := len(u.out.records); n > perBatch*batches/2 {
		t.Fatalf("the small partition came after %d records of the large one", n)
	}
}

func TestPausedSplitsAreNotReadAndGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	pauser := u.r.(sdk.Pauser)
	if err := pauser.PauseOrResume([]sdk.SplitID{"orders-0"}, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("orders", 0, 0, 5)...)
	produce(t, b, numbered("orders", 1, 0, 5)...)
	for _, r := range u.records(5) {
		if r.Partition != 1 {
			t.Fatalf("read partition %d, which is paused", r.Partition)
		}
	}
	if err := pauser.PauseOrResume(nil, []sdk.SplitID{"orders-0"}); err != nil {
		t.Fatal(err)
	}
	if got := offsetsOf(u.records(10)[5:]); !slices.Equal(got, count(5)) {
		t.Fatalf("after the resume: %v", got)
	}
}

func TestAddedPartitionsAreReadWhileOthersAreIdle(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	produce(t, b, numbered("orders", 0, 0, 3)...)
	produce(t, b, numbered("orders", 1, 0, 3)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	u := read(t, s, splits[0])
	u.records(3)
	u.add(splits[1])
	if got := u.records(6); got[5].Partition != 1 {
		t.Fatalf("read %v", offsetsOf(got))
	}
}

func TestALeaderMoveLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	for round := range 3 {
		leader := b.Cluster().LeaderFor("orders", 0)
		if err := b.Cluster().MoveTopicPartition("orders", 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
		produce(t, b, numbered("orders", 0, 0, 5)...)
		u.records(10 + 5*round)
	}
	if got := offsetsOf(u.out.records); !slices.Equal(got, count(20)) {
		t.Fatalf("read %v", got)
	}
}

func TestRetriableBrokerErrorsAreNotSeenByTheReader(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	b.Cluster().ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("drop the connection"), true
	})
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	if got := offsetsOf(u.records(5)); !slices.Equal(got, count(5)) {
		t.Fatalf("read %v", got)
	}
	u.awaitMetric("broker_errors", func(v float64, _ bool) bool { return v >= 1 })
	u.awaitMetric("brokers_unreachable", func(v float64, ok bool) bool { return ok && v == 0 })
}

func TestWakeupsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const n = 20_000
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, n)...)
	s := sourceOf(b, "orders")
	s.FetchMaxPartitionBytes = 4 << 10
	u := read(t, s, splitsOf(t, s)...)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	often := time.NewTicker(time.Millisecond) // not all the time: there may be one processor only, and the reader has something to do too
	defer often.Stop()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-often.C:
				u.r.Wakeup()
			}
		}
	}()
	got := offsetsOf(u.records(n))
	close(stop)
	<-stopped
	if !slices.Equal(got, count(n)) {
		t.Fatalf("%d records, not 0 to %d in order", len(got), n-1)
	}
}

func TestClosingDoesNotWaitForASilentBroker(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	s.FetchMaxWait = 30 * time.Second
	ctx := newLent()
	r, err := s.NewReader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fetching := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	if err := r.AddSplits(splitsOf(t, s)); err != nil {
		t.Fatal(err)
	}
	if err := fetching.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("closing took %s", took)
	}
}

func TestTheRateLimitHoldsBackRecords(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 1000)...)
	s := sourceOf(b, "orders")
	s.RecordsPerSecond, s.Stop = 2000, Latest()
	started := time.Now()
	if got := read(t, s, splitsOf(t, s)...).end(); len(got) != 1000 {
		t.Fatalf("read %d records", len(got))
	}
	if took := time.Since(started); took < 200*time.Millisecond {
		t.Errorf("1000 records at 2000 a second took %s", took)
	}
}
