package realtest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka"
)

func TestAQuotaSlowsABoundedReaderAndEndsItNowhereButAtItsStop(t *testing.T) {
	t.Parallel() // an answer of a throttled broker is empty, which is not the end
	c := shared(t)
	topic := c.topic(1, 1)
	const (
		records   = 50
		perRecord = 50_000
		rate      = 200_000 // averaged over ten seconds, so the first 2 MB pass
	)
	for range records {
		c.write(&kgo.Record{Topic: topic, Value: make([]byte, perRecord)})
	}
	id := topic // a client id of the test's own
	altered, err := c.admin.AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: rate}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range altered {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	s := c.source(topic)
	s.ClientID, s.Stop = id, kafka.Latest()
	begin := time.Now()
	j := run(t, s)
	j.end()
	if len(j.records) != records || len(j.failures) != 0 {
		t.Errorf("read %d records, want %d; failures %v", len(j.records), records, j.failures)
	}
	for i, o := range offsets(j.records) {
		if int64(i) != o {
			t.Fatalf("read %v", offsets(j.records))
		}
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("read %d bytes in %s: the broker did not throttle, so nothing was shown", records*perRecord, took)
	}
}
