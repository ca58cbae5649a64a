package kafka

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// groupOffset asks where a group stands; -1 for nowhere.
func groupOffset(t *testing.T, b *kafkatest.Broker, group, topic string, partition int32) int64 {
	t.Helper()
	client, err := kgo.NewClient(b.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := kadm.NewClient(client).FetchOffsets(t.Context(), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatal(err)
	}
	at, ok := found.Lookup(topic, partition)
	if !ok {
		return -1
	}
	return at.At
}

func setGroupOffset(t *testing.T, b *kafkatest.Broker, group, topic string, partition int32, offset int64) {
	t.Helper()
	client, err := kgo.NewClient(b.ClientOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	offsets := make(kadm.Offsets)
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1})
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

// complete tells the reader that a checkpoint completed.
func (u *run) complete(id sdk.CheckpointID) {
	u.t.Helper()
	if err := u.r.(sdk.CheckpointListener).CheckpointComplete(id); err != nil {
		u.t.Fatal(err)
	}
}

func (u *run) cut(id sdk.CheckpointID) {
	u.t.Helper()
	if _, err := u.r.Snapshot(id); err != nil {
		u.t.Fatal(err)
	}
}

func TestPositionsAreCommittedWhenTheirCheckpointCompletesAndNotBefore(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	u.cut(1)
	produce(t, b, numbered("orders", 0, 5, 5)...)
	u.records(10)
	if at := groupOffset(t, b, "observers", "orders", 0); at != -1 {
		t.Errorf("committed %d before any checkpoint completed", at)
	}
	u.complete(1)
	u.awaitMetric("offset_commits", func(v float64, _ bool) bool { return v == 1 })
	if at := groupOffset(t, b, "observers", "orders", 0); at != 5 {
		t.Errorf("committed %d, the checkpoint was cut at 5", at)
	}
}

func TestTheLastPositionsAreCommittedAtAClose(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	s.CommitGroup, s.Stop = "observers", Latest()
	u := read(t, s, splitsOf(t, s)...)
	u.end()
	u.cut(1)
	u.complete(1)
	if err := u.r.Close(); err != nil {
		t.Fatal(err)
	}
	if at := groupOffset(t, b, "observers", "orders", 0); at != 5 {
		t.Errorf("committed %d, want the end of the finished split", at)
	}
}

func TestAGroupThatCannotBeCommittedToHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	refuse := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: -1})
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	u.cut(1)
	u.complete(1)
	u.awaitMetric("offset_commit_failures_in_a_row", func(v float64, _ bool) bool { return v == 1 })
	produce(t, b, numbered("orders", 0, 5, 5)...)
	u.records(10)
	if n := refuse.Hits(); n != 1 {
		t.Errorf("%d tries for one checkpoint", n)
	}
	refuse.Remove()
	u.cut(2)
	u.complete(2)
	u.awaitMetric("offset_commit_failures_in_a_row", func(v float64, _ bool) bool { return v == 0 })
	if at := groupOffset(t, b, "observers", "orders", 0); at != 10 {
		t.Errorf("committed %d, want 10", at)
	}
}

// gate lets OffsetCommit requests wait for the test. Requests on one connection are served in turn, so nothing else waits.
func gate(b *kafkatest.Broker) (entered, open chan struct{}, hits *atomic.Int64) {
	entered, open, hits = make(chan struct{}, 100), make(chan struct{}), new(atomic.Int64)
	c := b.Cluster()
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		hits.Add(1)
		entered <- struct{}{}
		c.SleepControl(func() { <-open })
		return nil, nil, false
	})
	return entered, open, hits
}

func TestOneCommitIsInFlightAndTheNewestWins(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	entered, open, hits := gate(b)
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	metrics := newInstruments()
	c := newCommitter(s.withDefaults(), metrics, newLent().log)
	offer := func(topic string, offset int64) {
		c.offer([]Split{{Topic: topic, Offset: offset, Epoch: NoEpoch, Stop: NoStop}})
	}
	offer("orders", 1)
	<-entered
	offer("orders", 2)
	offer("other", 7) // finished, and in no later checkpoint
	for i := int64(3); i <= 50; i++ {
		offer("orders", i)
	}
	close(open)
	c.close()
	if n := hits.Load(); n != 2 {
		t.Errorf("%d commits, want one in flight and one for all the rest", n)
	}
	if at := groupOffset(t, b, "observers", "orders", 0); at != 50 {
		t.Errorf("committed %d, want the newest", at)
	}
	if at := groupOffset(t, b, "observers", "other", 0); at != 7 {
		t.Errorf("committed %d for a split that finished meanwhile", at)
	}
}

func TestCommitsNeverGoBack(t *testing.T) {
	t.Parallel()
	at := func(offset int64, epoch int32) Split { return Split{Topic: "a", Offset: offset, Epoch: epoch} }
	other := Split{Topic: "a", TopicID: [16]byte{1}, Offset: 1}
	for _, test := range []struct {
		before, now Split
		want        bool
	}{
		{Split{}, at(0, NoEpoch), true},
		{at(5, 0), at(6, 0), true},
		{at(5, 0), at(5, 0), false},
		{at(5, 0), at(4, 0), false},
		{at(5, 0), at(4, 1), true}, // truncated: on_lost moved it back
		{at(5, 0), other, true},
	} {
		if got := moved(test.before, test.now); got != test.want {
			t.Errorf("%+v after %+v: %t", test.now, test.before, got)
		}
	}
}

func TestACloseWaitsForABrokerThatDoesNotAnswerOnlySoLong(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	entered, open, _ := gate(b)
	defer close(open)
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	c := newCommitter(s.withDefaults(), newInstruments(), newLent().log)
	c.offer([]Split{{Topic: "orders", Offset: 1, Epoch: NoEpoch, Stop: NoStop}})
	<-entered
	began := time.Now()
	c.close()
	if took := time.Since(began); took > lastCommitWithin+time.Second {
		t.Errorf("closed after %s", took)
	}
}

func TestCommitsOfAGroupWithMembersSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	member, err := kgo.NewClient(append(b.ClientOptions(), kgo.ConsumerGroup("busy"), kgo.ConsumeTopics("orders"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	member.PollFetches(t.Context()) // so it is a member
	s := sourceOf(b, "orders")
	d := s.withDefaults()
	client, err := d.askingClient(0)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	err = d.ask(client).commit(t.Context(), "busy", map[place]Split{{"orders", 0}: {Topic: "orders", Offset: 1}})
	says(t, err, ErrGroup, `"busy"`, "has members", "a group of its own")
}

func TestStartAndStopWhereAGroupStands(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	produce(t, b, numbered("orders", 1, 0, 5)...)
	setGroupOffset(t, b, "old", "orders", 0, 3)
	for _, test := range []struct {
		name  string
		start Position
		stop  Position
		want  [2][2]int64 // start and stop by partition
	}{
		{"earliest", Committed("old", Earliest()), Position{}, [2][2]int64{{3, -1}, {0, -1}}},
		{"latest", Committed("old", Latest()), Position{}, [2][2]int64{{3, -1}, {5, -1}}},
		{"no group", Committed("unheard of", Earliest()), Position{}, [2][2]int64{{0, -1}, {0, -1}}},
		{"stop", Earliest(), Committed("old", Latest()), [2][2]int64{{0, 3}, {0, 5}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := sourceOf(b, "orders")
			s.Start, s.Stop = test.start, test.stop
			for i, split := range splitsOf(t, s) {
				if split.Offset != test.want[i][0] || split.Stop != test.want[i][1] {
					t.Errorf("partition %d: %d to %d, want %v", i, split.Offset, split.Stop, test.want[i])
				}
			}
		})
	}
	for field, s := range map[string]*Source{"start": {Start: Committed("old", Position{})}, "stop": {Stop: Committed("old", Position{})}} {
		s.Brokers, s.Topics, s.Client = b.Addrs(), []string{"orders"}, b.ClientOptions()
		_, err := discover(t, s, true)
		says(t, err, ErrNotCommitted, field+":", `"old"`, "1 of 2 partitions", "orders/1", "fallback")
		says(t, err, sdk.ErrFatal)
	}
}

func TestACommittedOffsetThatIsLostIsALostPosition(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	setGroupOffset(t, b, "old", "orders", 0, 2)
	if err := b.Cluster().DeleteRecords("orders", 0, 6); err != nil {
		t.Fatal(err)
	}
	s := sourceOf(b, "orders")
	s.Start = Committed("old", Latest())
	says(t, read(t, s, splitsOf(t, s)...).fail(), ErrOffsetOutOfRange, "records 2 to 5")
}

func TestAGroupThatIsCommittedToNeverDecidesWhereToRead(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	setGroupOffset(t, b, "observers", "orders", 0, 7)
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	if got := splitsOf(t, s)[0].Offset; got != 0 {
		t.Errorf("starts at %d", got)
	}
}

func TestWhatCouldNotBeCommittedIsPartOfTheNextCommit(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "other": 1}})
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.GroupAuthorizationFailed, Count: 1})
	s := sourceOf(b, "orders")
	s.CommitGroup = "observers"
	u := &run{t: t, ctx: newLent()}
	c := newCommitter(s.withDefaults(), u.ctx.metrics, u.ctx.log)
	c.offer([]Split{{Topic: "other", Offset: 7, Epoch: NoEpoch, Stop: 7}}) // finished, and in no later checkpoint
	u.awaitMetric("offset_commit_failures", func(v float64, _ bool) bool { return v == 1 })
	c.offer([]Split{{Topic: "orders", Offset: 1, Epoch: NoEpoch, Stop: NoStop}})
	c.close()
	for topic, want := range map[string]int64{"other": 7, "orders": 1} {
		if at := groupOffset(t, b, "observers", topic, 0); at != want {
			t.Errorf("%s: committed %d, want %d", topic, at, want)
		}
	}
}
