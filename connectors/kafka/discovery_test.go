package kafka

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// timed makes a topic whose record i has the timestamp 1000+times[i] milliseconds.
func timed(t *testing.T, b *kafkatest.Broker, topic string, times ...int64) {
	t.Helper()
	for _, ms := range times {
		produce(t, b, &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(1000 + ms), Value: []byte("v")})
	}
}

func TestStartAndStopBecomeOffsets(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	timed(t, b, "orders", 0, 10, 5, 20)                  // 0 1 2 3
	transact(t, b, true, numbered("orders", 0, 0, 1)...) // 4, marker 5
	open := begin(t, b, numbered("orders", 0, 0, 2)...)  // 6 7
	t.Cleanup(func() { _ = open.Abort(t.Context()) })    // the test is over then, whatever it answers
	if err := b.Cluster().DeleteRecords("orders", 0, 1); err != nil {
		t.Fatal(err)
	}
	beyond := time.Now().Add(time.Hour)
	for _, test := range []struct {
		name              string
		isolation         Isolation
		start, stop       Position
		wantStart, wantTo int64
	}{
		{"earliest is the first record that is left", ReadCommitted, Earliest(), Position{}, 1, NoStop},
		{"no start is earliest", ReadCommitted, Position{}, Position{}, 1, NoStop},
		{"latest is before an open transaction", ReadCommitted, Latest(), Latest(), 6, 6},
		{"latest of uncommitted records is the end", ReadUncommitted, Latest(), Latest(), 8, 8},
		{"a time is the first record at or after it", ReadCommitted, Timestamp(time.UnixMilli(1006)), Timestamp(time.UnixMilli(1011)), 1, 3},
		{"a time between milliseconds is rounded up", ReadCommitted, Timestamp(time.UnixMilli(1010).Add(1)), Position{}, 3, NoStop},
		{"a time beyond the end is the end", ReadCommitted, Timestamp(beyond), Timestamp(beyond), 6, 6},
		{"offsets stay", ReadCommitted, at("orders", 2), at("orders", 8), 2, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sourceOf(b, "orders")
			s.Isolation, s.Start, s.Stop = test.isolation, test.start, test.stop
			got := splitsOf(t, s)
			if len(got) != 1 || got[0].Offset != test.wantStart || got[0].Start != test.wantStart || got[0].Stop != test.wantTo {
				t.Fatalf("%+v, want start %d and stop %d", got, test.wantStart, test.wantTo)
			}
			if got[0].TopicID == [16]byte{} {
				t.Error("the split has no topic id")
			}
		})
	}
}

func at(topic string, offset int64) Position {
	return Offsets(map[string]map[int32]int64{topic: {0: offset}})
}

func TestOffsetsOutsideTheLogAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	if err := b.Cluster().DeleteRecords("orders", 0, 2); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		start, stop Position
		field       string
		says        string
	}{
		{at("orders", 1), Position{}, "start", "1 was given"},
		{at("orders", 6), Position{}, "start", "6 was given"},
		{Earliest(), at("orders", 6), "stop", "6 was given"},
	} {
		s := sourceOf(b, "orders")
		s.Start, s.Stop = test.start, test.stop
		_, err := discover(t, s, true)
		says(t, err, ErrOffsetOutOfRange, test.field+":", test.says, "holds 2 to 5")
		says(t, err, sdk.ErrFatal)
	}
}

func TestOffsetsMustNameEveryPartitionAndNoOther(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 3}})
	s := sourceOf(b, "orders")
	s.Start = Offsets(map[string]map[int32]int64{"orders": {0: 0, 7: 0}})
	s.Stop = Offsets(map[string]map[int32]int64{"orders": {0: 0, 1: 0}})
	_, err := discover(t, s, true)
	says(t, err, sdk.ErrFatal, "start: no offset is given for orders/1, orders/2", "orders/7: remove it", "stop: no offset is given for orders/2")
}

func TestPartitionsFoundLaterStartAtTheirBeginning(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	s := sourceOf(b, "orders")
	s.Start = Latest()
	produce(t, b, numbered("orders", 0, 0, 4)...)
	first := splitsOf(t, s)
	if first[0].Offset != 4 || first[1].Offset != 0 {
		t.Fatalf("first discovery: %+v", first)
	}
	if err := b.AddPartitions(t.Context(), "orders", 3); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("orders", 2, 0, 5)...)
	later, err := discover(t, s, false, place{"orders", 0}, place{"orders", 1})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(later, func(s Split) bool { return s.Partition == 2 })
	if len(later) != 3 || i < 0 || later[i].Offset != 0 {
		t.Fatalf("later discovery: %+v", later)
	}
}

func TestTopicsFoundAfterAnEmptyFirstDiscoveryStartAtTheirBeginning(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"other": 1}})
	s := sourceOf(b)
	s.Pattern, s.Start = "orders-.*", Latest()
	if first := splitsOf(t, s); len(first) != 0 {
		t.Fatalf("found %+v", first)
	}
	if err := b.CreateTopic("orders-eu", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("orders-eu", 0, 0, 5)...)
	later, err := discover(t, s, false)
	if err != nil || len(later) != 1 || later[0].Offset != 0 {
		t.Fatalf("found %+v, error %v; want the new topic from 0", later, err)
	}
}

func TestAPatternMatchesWholeNamesAndNoInternalTopics(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "orders-eu": 1, "old-orders": 1, "__consumer_offsets": 1}})
	for pattern, want := range map[string]int{"orders": 1, "orders.*": 2, ".*orders": 2, "a|orders": 1} {
		s := sourceOf(b)
		s.Pattern = pattern
		if got := splitsOf(t, s); len(got) != want {
			t.Errorf("pattern %q found %+v, want %d", pattern, got, want)
		}
	}
}

func TestDiscoverySeesNewPartitionsAtOnce(t *testing.T) {
	t.Parallel() // the client's own helpers would answer from a cache for seconds
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	for want := range int32(4) {
		if want > 0 {
			if err := b.AddPartitions(t.Context(), "orders", want+1); err != nil {
				t.Fatal(err)
			}
		}
		if got := splitsOf(t, s); len(got) != int(want)+1 {
			t.Fatalf("%d partitions, want %d", len(got), want+1)
		}
	}
}

func TestAMissingTopicFailsTheFirstDiscoveryAlsoOfAJobThatWaits(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders", "payments")
	s.OnDeleted = Wait
	_, err := discover(t, s, true)
	says(t, err, ErrTopicMissing, `"payments"`, "correct topics")
	got, err := discover(t, s, false, place{"orders", 0}, place{"payments", 0})
	if err != nil || len(got) != 1 {
		t.Fatalf("later: %+v, error %v", got, err)
	}
}

func TestABoundedJobWithoutTopicsIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b)
	s.Pattern, s.Stop = "nothing-.*", Latest()
	_, err := discover(t, s, true)
	says(t, err, ErrTopicMissing, `"nothing-.*"`)
}

func TestAnIncompleteAnswerFailsTheDiscovery(t *testing.T) {
	t.Parallel() // a partition without an answer would else be found later and read from its beginning
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Partitions: []int32{1}, Err: kerr.UnknownServerError, Count: -1})
	s := sourceOf(b, "orders")
	s.Start = Latest()
	_, err := discover(t, s, true)
	says(t, err, kerr.UnknownServerError, "orders/1")
}

func TestIdentityIsWhatThePositionsDependOn(t *testing.T) {
	t.Parallel()
	base := Source{Brokers: []string{"a:1"}, Topics: []string{"b", "a"}}
	same := Source{Brokers: []string{"c:1"}, Topics: []string{"a", "b"}, Start: Latest(), ClientID: "x"}
	if !slices.Equal(base.identity(), same.identity()) {
		t.Errorf("%v and %v differ", base.identity(), same.identity())
	}
	for _, other := range []Source{
		{Topics: []string{"a"}},
		{Pattern: "a.*"},
		{Topics: base.Topics, Isolation: ReadUncommitted},
		{Topics: base.Topics, Stop: Latest()},
		{Topics: base.Topics, Stop: Offsets(map[string]map[int32]int64{"a": {0: 1}})},
	} {
		if slices.Equal(base.identity(), other.identity()) {
			t.Errorf("%v does not differ", other.identity())
		}
	}
}
