package realtest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

func TestATopicDeletedWhileItIsReadIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel() // the client itself says nothing, for ever
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 5)...)
	j := run(t, c.source(topic))
	j.read(5)
	c.delete(topic)
	says(t, j.fail(), kafka.ErrTopicMissing, topic)
}

func TestATopicCreatedAnewAtOnceWhileItIsReadIsAnError(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 5)...)
	j := run(t, c.source(topic))
	j.read(5)
	c.recreate(topic, 1, 1)
	c.write(numbered(topic, 100, 8)...)
	says(t, j.fail(), kafka.ErrTopicReplaced, topic)
	wantOffsets(t, j, 0, 1, 2, 3, 4)
}

func TestARestoredPositionIsNotReadFromANewTopicOfTheSameName(t *testing.T) {
	t.Parallel() // epochs begin at 0 again, so only the id of the topic tells
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 5)...)
	at := c.split(topic, 5, 0)
	c.recreate(topic, 1, 1)
	c.write(numbered(topic, 100, 8)...)
	j := resume(t, c.source(topic), at)
	says(t, j.fail(), kafka.ErrTopicReplaced, topic)
	if len(j.records) != 0 {
		t.Errorf("read %v of the new topic", offsets(j.records))
	}
}

func TestATopicCreatedAnewIsReadFromItsStartWhenThePolicyAllowsIt(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 5)...)
	s := c.source(topic)
	s.OnRecreated = kafka.ContinueEarliest
	j := run(t, s)
	j.read(5)
	c.recreate(topic, 1, 1)
	c.write(numbered(topic, 100, 3)...)
	j.read(8)
	wantOffsets(t, j, 0, 1, 2, 3, 4, 0, 1, 2)
}

func TestPartitionsAddedWhileAJobReadsFromTheLatestAreReadFromTheirFirstRecord(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 5)...)
	s := c.source(topic)
	s.Start = kafka.Latest()
	j := run(t, s)
	if err := j.until("the first partition", func() bool { return len(j.saved) == 1 }); err != nil {
		t.Fatal(err)
	}
	grown, err := c.admin.CreatePartitions(t.Context(), 1, topic)
	if err != nil || grown.Error() != nil {
		t.Fatal(err, grown.Error())
	}
	c.awaitPartitions(topic, 2)
	// Another client: this one would not learn of the partition for seconds.
	writer := c.newClient()
	for i := range 5 {
		writeBy(t, writer, &kgo.Record{Topic: topic, Partition: 1, Value: []byte{byte(i)}})
	}
	j.read(5)
	for i, r := range j.records {
		if r.Partition != 1 || r.Offset != int64(i) {
			t.Fatalf("record %d is %d/%d", i, r.Partition, r.Offset)
		}
	}
}

func TestPartitionsAddedWhileAJobIsDownAreReadFromTheirFirstRecord(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	s := c.source(topic)
	s.Start = kafka.Latest()
	j := run(t, s)
	if err := j.until("the first partition", func() bool { return len(j.saved) == 1 }); err != nil {
		t.Fatal(err)
	}
	state, saved := j.c.state(), j.saved
	j.close()
	grown, err := c.admin.CreatePartitions(t.Context(), 1, topic)
	if err != nil || grown.Error() != nil {
		t.Fatal(err, grown.Error())
	}
	c.awaitPartitions(topic, 2)
	writer := c.newClient()
	writeBy(t, writer, &kgo.Record{Topic: topic, Partition: 1, Value: []byte("new")}, &kgo.Record{Topic: topic, Value: []byte("old")})
	again := newJob(t, s)
	again.saved = saved
	again.c = coordinate(t, s, state)
	again.open()
	again.read(2)
	seen := map[int32]string{}
	for _, r := range again.records {
		seen[r.Partition] = string(r.Value)
	}
	if seen[0] != "old" || seen[1] != "new" {
		t.Errorf("read %v", seen)
	}
}

func TestATopicThatDoesNotExistIsAnErrorWithinSeconds(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var source sdk.Prober = c.source("no-such-topic")
	says(t, source.Probe(ctx), kafka.ErrTopicMissing, "no-such-topic")
}

// awaitPartitions waits until the broker, too, knows what the controller has created.
func (c *cluster) awaitPartitions(topic string, n int) {
	c.t.Helper()
	eventually(c.t, "the broker knows the new partition", func(ctx context.Context) (bool, error) {
		topics, err := c.admin.ListTopics(ctx, topic)
		return err == nil && len(topics[topic].Partitions) == n, err
	})
}
