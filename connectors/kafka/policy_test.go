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

func (u *run) metric(name string) float64 {
	v, _ := u.ctx.metrics.get(name)
	return v
}

// produceAnew writes with a client that does not know the topics' old ids.
func produceAnew(t *testing.T, b *kafkatest.Broker, records ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(append(b.ClientOptions(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestOnLostMovesAPositionBelowTheLogStartAndCountsWhatIsLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy Policy
		first  int64
		lost   float64
	}{{ContinueEarliest, 7, 4}, {ContinueLatest, 10, 7}} {
		t.Run(string(test.policy), func(t *testing.T) {
			t.Parallel()
			b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
			produce(t, b, numbered("orders", 0, 0, 10)...)
			s := sourceOf(b, "orders")
			s.OnLost = test.policy
			splits := splitsOf(t, s)
			splits[0].Offset = 3
			if err := b.Cluster().DeleteRecords("orders", 0, 7); err != nil {
				t.Fatal(err)
			}
			u := read(t, s, splits...)
			u.awaitMetric("lost_positions", func(v float64, _ bool) bool { return v == 1 })
			produce(t, b, numbered("orders", 0, 10, 5)...)
			if got := u.records(int(15 - test.first)); got[0].Offset != test.first {
				t.Errorf("goes on at %d, want %d", got[0].Offset, test.first)
			}
			if n := u.metric("lost_records"); n != test.lost {
				t.Errorf("%v records are counted as lost, want %v", n, test.lost)
			}
		})
	}
}

func TestAMovedPositionIsInTheNextSnapshotAlsoWithoutARecord(t *testing.T) {
	t.Parallel() // or a restart would count and report the same loss again
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	s.OnLost = ContinueLatest
	splits := splitsOf(t, s)
	if err := b.Cluster().DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	u := read(t, s, splits...)
	if _, err := u.until(func() bool { return u.snapshot()[place{"orders", 0}].Offset == 10 }); err != nil {
		t.Fatal(err)
	}
	if len(u.out.records) != 0 {
		t.Errorf("emitted %v", offsetsOf(u.out.records))
	}
}

func TestOnLostGoesOnWhereATruncatedLogWasWrittenAnew(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 20)...)
	s := sourceOf(b, "orders")
	s.OnLost = ContinueEarliest
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 10, 0
	b.SimulateTruncation("orders", 0, 6)
	u := read(t, s, splits...)
	if got := offsetsOf(u.records(14)); !slices.Equal(got, []int64{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}) {
		t.Errorf("read %v", got)
	}
	if positions, records := u.metric("lost_positions"), u.metric("lost_records"); positions != 1 || records != 4 {
		t.Errorf("%v positions and %v records are counted as lost, want 1 and 4", positions, records)
	}
}

func TestOnLostGoesOnAtTheEndOfALogThatIsShorterThanThePosition(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	s.OnLost = ContinueEarliest
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 30, NoEpoch
	u := read(t, s, splits...)
	u.awaitMetric("lost_records", func(v float64, _ bool) bool { return v == 20 })
	produce(t, b, numbered("orders", 0, 10, 3)...)
	if got := offsetsOf(u.records(3)); got[0] != 10 {
		t.Errorf("read %v", got)
	}
}

func TestLossWhileReadingReportsOnlyWhatWasNotInHand(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders", "other")
	s.OnLost = ContinueEarliest
	u := read(t, s, splitsOf(t, s)...)
	u.records(10)
	if err := u.r.(sdk.Pauser).PauseOrResume([]sdk.SplitID{"orders-0"}, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("other", 0, 0, 1)...)
	u.records(11) // so the pause has been applied
	produce(t, b, numbered("orders", 0, 10, 20)...)
	if err := b.Cluster().DeleteRecords("orders", 0, 25); err != nil {
		t.Fatal(err)
	}
	if err := u.r.(sdk.Pauser).PauseOrResume(nil, []sdk.SplitID{"orders-0"}); err != nil {
		t.Fatal(err)
	}
	got := u.records(16)
	last := got[len(got)-1]
	if n := u.metric("lost_records"); last.Offset != 29 || n != 15 && n != 0 { // 0: a fetch had brought them before the pause
		t.Errorf("read up to %d, %v records are counted as lost", last.Offset, n)
	}
}

func TestEveryLostPositionIsInTheError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 3}})
	for p := range int32(3) {
		produce(t, b, numbered("orders", p, 0, 10)...)
	}
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	for p, at := range []int64{4, 0, 6} {
		if err := b.Cluster().DeleteRecords("orders", int32(p), at); err != nil {
			t.Fatal(err)
		}
	}
	err := read(t, s, splits...).fail()
	says(t, err, ErrOffsetOutOfRange, "partition 0 at offset 0: the log begins at 4: records 0 to 3", "partition 2 at offset 0: the log begins at 6: records 0 to 5", "on_lost")
	says(t, err, sdk.ErrFatal)
}

func TestARefusedOffsetThatIsInTheLogIsAskedForAgainWithoutAHotLoop(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	refuse := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Err: kerr.OffsetOutOfRange, Count: 3})
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	if got := u.records(5); len(got) != 5 || refuse.Hits() != 3 {
		t.Errorf("read %d records, refused %d times", len(got), refuse.Hits())
	}
	if n := u.metric("lost_positions"); n != 0 {
		t.Errorf("%v positions are counted as lost", n)
	}
}

func TestOnRecreatedReadsTheNewTopicFromItsStart(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders", "other")
	s.OnRecreated = ContinueEarliest
	splits := splitsOf(t, s)
	u := read(t, s, splits...)
	u.records(5)
	before := u.snapshot()[place{"orders", 0}]
	recreate(t, b, "orders")
	produceAnew(t, b, numbered("orders", 0, 100, 3)...)
	produce(t, b, numbered("other", 0, 0, 4)...)
	got := u.records(12)
	var fresh []int64
	for _, r := range got[5:] {
		if r.Topic == "orders" {
			fresh = append(fresh, r.Offset)
		}
	}
	after := u.snapshot()[place{"orders", 0}]
	if !slices.Equal(fresh, count(3)) || after.TopicID == before.TopicID || after.Offset != 3 || after.Start != 0 {
		t.Errorf("read %v of the new topic; before %+v, after %+v", fresh, before, after)
	}
	if n := u.metric("recreated_partitions"); n != 1 {
		t.Errorf("%v partitions are counted as created anew", n)
	}

	again := read(t, s, before) // a restart from before
	if got := offsetsOf(again.records(3)); !slices.Equal(got, count(3)) {
		t.Errorf("restarted: read %v", got)
	}
}

func TestASplitWithAStopNeverGoesOnInATopicCreatedAnew(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	s.Stop, s.OnRecreated = Latest(), ContinueEarliest
	splits := splitsOf(t, s)
	recreate(t, b, "orders")
	says(t, read(t, s, splits...).fail(), ErrTopicReplaced)
}

func TestOnDeletedKeepsThePositionReadsTheOthersAndGoesOn(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders", "other")
	s.OnDeleted = Wait
	splits := splitsOf(t, s)
	for i := range splits {
		if splits[i].Topic == "orders" {
			splits[i].Offset = 2
		}
	}
	hidden := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Err: kerr.UnknownTopicOrPartition, Count: -1})
	u := read(t, s, splits...)
	produce(t, b, numbered("other", 0, 0, 4)...)
	u.records(4)
	u.awaitMetric("missing_partitions", func(v float64, _ bool) bool { return v == 1 })
	if at := u.snapshot()[place{"orders", 0}]; at != splits[0] {
		t.Errorf("kept %+v, want %+v", at, splits[0])
	}
	hidden.Remove()
	got := u.records(7)
	if last := got[4:]; last[0].Topic != "orders" || last[0].Offset != 2 || last[2].Offset != 4 {
		t.Errorf("went on with %+v", last)
	}
	u.awaitMetric("missing_partitions", func(v float64, _ bool) bool { return v == 0 })
}

func TestABoundedReaderOfADeletedTopicDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	splits := splitsOf(t, s)
	splits[0].Stop = 8 // which the log does not reach
	u := read(t, s, splits...)
	u.records(5)
	if err := b.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	says(t, u.fail(), ErrTopicMissing, `"orders"`, "on_deleted")
}

func TestADeletedTopicEndsARunningReaderWithItsName(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	if err := b.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	err := u.fail()
	says(t, err, ErrTopicMissing, `"orders"`, "partition 0 at offset 5", "on_deleted")
	says(t, err, sdk.ErrFatal)
}

func TestADeletedTopicEndsTheDiscoveryWithItsName(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders-eu": 1, "orders-us": 1}})
	s := sourceOf(b)
	s.Pattern = "orders-.*"
	known := splitsOf(t, s)
	if err := b.Cluster().DeleteTopic("orders-us"); err != nil {
		t.Fatal(err)
	}
	_, err := discoverAfter(t, s, known)
	says(t, err, ErrTopicMissing, `"orders-us"`, "deleted", "on_deleted")
	says(t, err, sdk.ErrFatal)
	s.OnDeleted = Wait
	if found, err := discoverAfter(t, s, known); err != nil || len(found) != 1 {
		t.Errorf("found %+v, error %v", found, err)
	}
}

func TestATopicThatIsMissingForAMomentIsNotDeleted(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	known := splitsOf(t, s)
	flap := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "orders", Err: kerr.UnknownTopicOrPartition, Count: 3})
	if _, err := discoverAfter(t, s, known); err != nil || flap.Hits() != 3 {
		t.Errorf("error %v after %d answers without the topic", err, flap.Hits())
	}
}

func TestTopicsMayBeAddedToASavedJobAndNotTakenAway(t *testing.T) {
	t.Parallel()
	topics := func(list string) sdk.Attribute { return sdk.Attribute{Name: "topics", Value: list} }
	for _, test := range []struct {
		source   Source
		from, to sdk.Attribute
		want     bool
	}{
		{Source{}, topics("a,b"), topics("a,b,c"), true},
		{Source{}, topics("b"), topics("a,b"), true},
		{Source{}, topics("a,b"), topics("a"), false},
		{Source{}, topics("a"), topics("aa"), false},
		{Source{Stop: Latest()}, topics("a"), topics("a,b"), false},
		{Source{DiscoveryInterval: DiscoveryOff}, topics("a"), topics("a,b"), false},
		{Source{}, sdk.Attribute{Name: "isolation", Value: "a"}, sdk.Attribute{Name: "isolation", Value: "a,b"}, false},
	} {
		if got := test.source.compatible(test.from, test.to); got != test.want {
			t.Errorf("%+v to %+v with stop %s: %t", test.from, test.to, test.source.Stop, got)
		}
	}
}

func TestATopicThatIsWaitedForCausesNoHotLoop(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders", "other")
	s.OnDeleted = Wait
	s.FetchMaxWait = 0 // the default
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	if err := b.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	asked := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch, kmsg.Metadata, kmsg.ListOffsets}, Observe: true, Count: -1})
	for i := range 20 { // the other topic is read meanwhile, for two seconds
		if err := sleep(t.Context(), 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		produce(t, b, numbered("other", 0, i, 1)...)
	}
	u.records(25)
	if n := asked.Hits(); n > 100 {
		t.Errorf("%d requests in two seconds", n)
	}
}

func TestAPartitionThatIsRefusedForEverIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	refuse := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Err: kerr.OffsetOutOfRange, Count: -1})
	s := sourceOf(b, "orders")
	says(t, read(t, s, splitsOf(t, s)...).fail(), kerr.OffsetNotAvailable, `"orders"`, "partition 0 at offset 0", "refused it 21 times")
	if n := refuse.Hits(); n > 3*maxStrikes {
		t.Errorf("%d fetches", n)
	}
}

func TestRecordsBesideAnErrorAreTakenOnlyWhereTheyFollowThePosition(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		doubt doubt
		taken int
	}{
		{&kgo.ErrDataLoss{ConsumedTo: 10, ResetTo: 6}, divergent, 0},
		{kerr.OffsetOutOfRange, offLimits, 2},
		{kerr.UnknownTopicID, otherTopic, 2},
		{kerr.NotLeaderForPartition, noDoubt, 2},
	} {
		s := Source{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}}
		ctx := newLent()
		f, err := newFetcher(s.withDefaults(), ctx, newLag(ctx.Metrics()))
		if err != nil {
			t.Fatal(err)
		}
		p := &partition{Split: Split{Topic: "orders", Offset: 10, Stop: NoStop}, id: "orders-0"}
		f.parts[p.place()], f.ids[p.id] = p, p.place()
		fetches := kgo.Fetches{
			{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{{Topic: "orders", Offset: 10}, {Topic: "orders", Offset: 11, LeaderEpoch: 3}}}}}}},
			{Topics: []kgo.FetchTopic{{Topic: "orders", Partitions: []kgo.FetchPartition{{Err: test.err}}}}},
		}
		if err := f.inspect(fetches); err != nil {
			t.Fatal(err)
		}
		taken := 0
		for _, c := range f.take(fetches) {
			taken += len(c.Elements)
		}
		if p.doubt != test.doubt || taken != test.taken || taken > 0 && (p.Offset != 12 || p.Epoch != 3) {
			t.Errorf("%v: doubt %d, %d records taken, position %d of epoch %d", test.err, p.doubt, taken, p.Offset, p.Epoch)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
