package realtest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka"
)

func TestATimestampAmongRecordsOutOfOrderFindsTheFirstAtOrAfterIt(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1, "retention.ms=-1")
	base := time.UnixMilli(1_700_000_000_000)
	for _, s := range []int{0, 10, 5, 20, 15, 30} {
		c.write(&kgo.Record{Topic: topic, Timestamp: base.Add(time.Duration(s) * time.Second), Value: []byte("x")})
	}
	for after, want := range map[int]int64{0: 0, 3: 1, 10: 1, 11: 3, 20: 3, 25: 5, 30: 5} {
		s := c.source(topic)
		s.Start, s.Stop = kafka.Timestamp(base.Add(time.Duration(after)*time.Second)), kafka.Latest()
		j := run(t, s)
		j.end()
		if got := offsets(j.records); len(got) != int(6-want) || got[0] != want {
			t.Errorf("from +%d s: read %v, want from %d", after, got, want)
		}
		j.close()
	}
}

func TestATimestampYoungerThanAllRecordsStartsAtTheEnd(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1, "retention.ms=-1")
	c.write(&kgo.Record{Topic: topic, Timestamp: time.UnixMilli(1_700_000_000_000), Value: []byte("old")})
	s := c.source(topic)
	s.Start = kafka.Timestamp(time.UnixMilli(1_700_000_000_001))
	j := run(t, s)
	if err := j.until("the partition", func() bool { return len(j.saved) == 1 }); err != nil {
		t.Fatal(err)
	}
	c.write(&kgo.Record{Topic: topic, Timestamp: time.UnixMilli(1_600_000_000_000), Value: []byte("new")})
	j.read(1)
	wantOffsets(t, j, 1)
}

func TestARecordHasTheTimeOfTheBrokerWhereTheTopicSaysSo(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1, "message.timestamp.type=LogAppendTime")
	begin := time.Now()
	c.write(&kgo.Record{Topic: topic, Timestamp: time.UnixMilli(1_700_000_000_000), Value: []byte("x")})
	j := run(t, c.source(topic))
	j.read(1)
	if at := j.records[0].Time; at.Before(begin.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("the record's time is %s, it was written at %s", at, begin)
	}
}
