package kafka

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/sdk"
)

// real is the shared server with a topic of the test's own.
type real struct {
	server *kafkaserver.Server
	client *kgo.Client
	topic  string
}

func onReal(t *testing.T, topic string, partitions int32) real {
	t.Helper()
	r := real{server: kafkaserver.Shared(t), topic: topic}
	r.client = realClient(t, r.server)
	r.create(t, partitions)
	return r
}

func (r real) create(t *testing.T, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(r.client).DeleteTopics(t.Context(), r.topic); err != nil { // of an earlier run on a server that is not ours
		t.Fatal(err)
	}
	createTopic(t, r.client, r.topic, partitions, 1, nil)
}

func (r real) source() *Source {
	return &Source{Brokers: r.server.Addrs(), Topics: []string{r.topic}, FetchMaxWait: 50 * time.Millisecond}
}

func (r real) deleteBefore(t *testing.T, partition int32, offset int64) {
	t.Helper()
	offsets := make(kadm.Offsets)
	offsets.Add(kadm.Offset{Topic: r.topic, Partition: partition, At: offset})
	deleted, err := kadm.NewClient(r.client).DeleteRecords(t.Context(), offsets)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRealDeletedRecordsEndTheReaderOrAreCounted(t *testing.T) {
	t.Parallel()
	r := onReal(t, "positions-deleted", 1)
	write(t, r.client, numbered(r.topic, 0, 0, 10)...)
	s := r.source()
	splits := splitsOf(t, s)
	splits[0].Offset = 3
	r.deleteBefore(t, 0, 7)
	says(t, read(t, s, splits...).fail(), ErrOffsetOutOfRange, "the log begins at 7: records 3 to 6")

	s.OnLost = ContinueEarliest
	u := read(t, s, splits...)
	if got := offsetsOf(u.records(3)); !slices.Equal(got, []int64{7, 8, 9}) || u.metric("lost_records") != 4 {
		t.Errorf("read %v, %v records are counted as lost", got, u.metric("lost_records"))
	}
}

func TestRealRecordsDeletedAheadOfAPausedReader(t *testing.T) {
	t.Parallel()
	r := onReal(t, "positions-paused", 1)
	write(t, r.client, numbered(r.topic, 0, 0, 5)...)
	s := r.source()
	s.OnLost = ContinueEarliest
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	id := []sdk.SplitID{place{r.topic, 0}.splitID()}
	if err := u.r.(sdk.Pauser).PauseOrResume(id, nil); err != nil {
		t.Fatal(err)
	}
	write(t, r.client, numbered(r.topic, 0, 5, 20)...)
	r.deleteBefore(t, 0, 20)
	if err := u.r.(sdk.Pauser).PauseOrResume(nil, id); err != nil {
		t.Fatal(err)
	}
	if _, err := u.until(func() bool { n := len(u.out.records); return n > 0 && u.out.records[n-1].Offset == 24 }); err != nil {
		t.Fatal(err)
	}
	if got, lost := len(u.out.records), u.metric("lost_records"); float64(got)+lost != 25 {
		t.Errorf("read %d records, %v are counted as lost: not all 25 are accounted for", got, lost)
	}
}

func TestRealTopicCreatedAnewIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	r := onReal(t, "positions-anew", 1)
	write(t, r.client, numbered(r.topic, 0, 0, 5)...)
	s := r.source()
	s.OnRecreated = ContinueEarliest
	splits := splitsOf(t, s)
	u := read(t, s, splits...)
	u.records(5)
	r.create(t, 1)
	r.client.PurgeTopicsFromClient(r.topic)
	write(t, r.client, numbered(r.topic, 0, 100, 7)...)
	if got := offsetsOf(u.records(12)[5:]); !slices.Equal(got, count(7)) {
		t.Errorf("read %v of the new topic", got)
	}
	s.OnRecreated = Fail
	says(t, read(t, s, splits...).fail(), ErrTopicReplaced, "on_recreated")
}

func TestRealDeletedTopicIsFoundByTheDiscovery(t *testing.T) {
	t.Parallel()
	r := onReal(t, "positions-gone", 1)
	s := r.source()
	known := splitsOf(t, s)
	if _, err := kadm.NewClient(r.client).DeleteTopics(t.Context(), r.topic); err != nil {
		t.Fatal(err)
	}
	_, err := discoverAfter(t, s, known)
	says(t, err, ErrTopicMissing, r.topic, "deleted")
}

func TestRealGroupsAreCommittedToAndTakenOverFrom(t *testing.T) {
	t.Parallel()
	r := onReal(t, "positions-groups", 2)
	write(t, r.client, numbered(r.topic, 0, 0, 10)...)
	s := r.source()
	s.CommitGroup = "positions-observers"
	u := read(t, s, splitsOf(t, s)...)
	u.records(10)
	u.cut(1)
	u.complete(1)
	u.awaitMetric("offset_commits", func(v float64, _ bool) bool { return v == 1 })

	next := r.source()
	next.Start = Committed(s.CommitGroup, Position{})
	splits := splitsOf(t, next)
	if splits[0].Offset != 10 || splits[0].Epoch < 0 || splits[1].Offset != 0 {
		t.Errorf("takes over at %+v", splits)
	}
	next.Start = Committed("positions-unheard-of", Position{})
	_, err := discover(t, next, true)
	says(t, err, ErrNotCommitted, "2 of 2")
}

func TestRealUncleanElectionIsFoundAlsoAfterTheLogGrewAgain(t *testing.T) { // not parallel: it kills brokers of its own
	server := kafkaserver.StartCluster(t, kafkaserver.Options{FastFailover: true, Properties: map[string]string{"unclean.leader.election.enable": "true"}})
	client := realClient(t, server)
	brokers := server.Brokers()
	first, second := brokers[0], brokers[1]
	one, yes := "1", "true"
	createAssigned(t, client, "orders", map[string]*string{"min.insync.replicas": &one, "unclean.leader.election.enable": &yes}, int32(first), int32(second))
	write(t, client, numbered("orders", 0, 0, 10)...)
	if err := server.Terminate(second); err != nil {
		t.Fatal(err)
	}
	write(t, client, numbered("orders", 0, 10, 10)...)
	s := &Source{Brokers: server.Addrs(), Topics: []string{"orders"}, FetchMaxWait: 50 * time.Millisecond}
	u := read(t, s, splitsOf(t, s)...)
	u.records(20)
	saved := u.snapshot()[place{"orders", 0}]
	if err := server.Kill9(first); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(second); err != nil {
		t.Fatal(err)
	}
	says(t, u.fail(), ErrTruncated, "records 10 to 19")

	write(t, client, numbered("orders", 0, 1000, 20)...) // the log is longer than before
	says(t, read(t, s, saved).fail(), ErrTruncated, "records 10 to 19", "on_lost")

	s.OnLost = ContinueEarliest
	again := read(t, s, saved)
	got := again.records(20)
	if got[0].Offset != 10 || string(got[0].Value) != "1000" || again.metric("lost_records") != 10 {
		t.Errorf("goes on at %d with %q, %v records are counted as lost", got[0].Offset, got[0].Value, again.metric("lost_records"))
	}
}

// createAssigned makes a topic of one partition on given brokers, led by the first.
func createAssigned(t *testing.T, client *kgo.Client, topic string, settings map[string]*string, replicas ...int32) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, -1, -1
	assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	assignment.Replicas = replicas
	wanted.ReplicaAssignment = append(wanted.ReplicaAssignment, assignment)
	for name, value := range settings {
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name, setting.Value = name, value
		wanted.Configs = append(wanted.Configs, setting)
	}
	req.Topics = append(req.Topics, wanted)
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range resp.Topics {
		if answer.ErrorCode != 0 {
			t.Fatal(fmt.Errorf("create %s: code %d", topic, answer.ErrorCode))
		}
	}
}
