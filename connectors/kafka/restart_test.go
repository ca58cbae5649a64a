package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

func TestAThousandRestoredPartitionsAreReadWithinASecond(t *testing.T) { // not parallel: it measures
	for _, shape := range []struct {
		topics     int
		partitions int32
	}{{1, 1000}, {1000, 1}} {
		t.Run(fmt.Sprintf("topics=%d", shape.topics), func(t *testing.T) {
			topics := make(map[string]int32)
			for i := range shape.topics {
				topics[fmt.Sprintf("topic-%04d", i)] = shape.partitions
			}
			b := broker(t, kafkatest.Options{Brokers: 3, Topics: topics})
			s := sourceOf(b)
			s.Pattern = "topic-.*"
			s.FetchMaxWait = 0 // the default
			splits := splitsOf(t, s)
			if len(splits) != 1000 {
				t.Fatalf("%d splits", len(splits))
			}
			var records []*kgo.Record
			for i := range splits {
				splits[i].Epoch = 0 // as after a record
				records = append(records, &kgo.Record{Topic: splits[i].Topic, Partition: splits[i].Partition, Value: []byte("v")})
			}
			produce(t, b, records...)
			began := time.Now()
			u := read(t, s, splits...)
			u.records(1)
			first := time.Since(began)
			u.records(1000)
			t.Logf("first record after %s, all partitions after %s", first, time.Since(began))
			if first > time.Second {
				t.Errorf("the first record came after %s", first)
			}
		})
	}
}
