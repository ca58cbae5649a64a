package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// The time that it takes is in the log of the test, some 50 ms; what bounds it, and can be checked on any machine, is the number of
// requests.
func TestAThousandRestoredPartitionsAreReadAfterAFewRequests(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		topics     int
		partitions int32
	}{{1, 1000}, {1000, 1}} {
		t.Run(fmt.Sprintf("topics=%d", shape.topics), func(t *testing.T) {
			t.Parallel()
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
			asked := make(map[kmsg.Key]*kfake.FaultHandle)
			for key, most := range mostRequests {
				asked[key] = b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{key}, Observe: true, Count: -1})
				defer func() {
					if n := asked[key].Hits(); int64(n) > most {
						t.Errorf("%d requests of kind %s, at most %d are expected", n, key.Name(), most)
					}
				}()
			}
			began := time.Now()
			u := read(t, s, splits...)
			u.records(1)
			t.Logf("first record after %s", time.Since(began))
			u.records(1000)
			t.Logf("all partitions after %s", time.Since(began))
		})
	}
}

// mostRequests bounds what three brokers are asked until a thousand partitions are read.
var mostRequests = map[kmsg.Key]int64{
	kmsg.Metadata:             6,      // the check of ids, and the client's own
	kmsg.ListOffsets:          2 * 3,  // where logs begin and end, of each leader
	kmsg.OffsetForLeaderEpoch: 3,      // by the client, of each leader
	kmsg.Fetch:                30 * 3, // records come in several fetches
}
