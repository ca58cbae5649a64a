package realtest

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

func TestAnOutageOfTheOnlyBrokerIsWaitedForAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := kafkaserver.Start(t, kafkaserver.Options{})
	server.RequireOwned(t)
	c := clusterOf(t, server)
	topic := c.topic(1, 1)
	j := run(t, c.source(topic))
	for round, outage := range []struct {
		name      string
		lose, end func(int) error
		lasts     time.Duration
	}{
		{"SIGSTOP", server.Stop, server.Cont, 6 * time.Second}, // longer than a request may take
		{"kill -9", server.Kill9, server.Restart, 2 * time.Second},
	} {
		c.write(numbered(topic, 10*round, 10)...)
		j.read(10 * (round + 1))
		must(t, outage.lose(1))
		j.quiet(outage.lasts)
		must(t, outage.end(1))
		must(t, server.WaitReady(t.Context()))
		if len(j.failures) > 0 {
			t.Errorf("%s: readers were made anew: %v", outage.name, j.failures)
		}
	}
	c.write(numbered(topic, 20, 10)...)
	j.read(30)
	for i, r := range j.records {
		if r.Offset != int64(i) {
			t.Fatalf("read %v", offsets(j.records))
		}
	}
}

func TestABrokerThatIsNotThereIsNamedWithinSeconds(t *testing.T) {
	t.Parallel()
	server := kafkaserver.Start(t, kafkaserver.Options{})
	server.RequireOwned(t)
	c := clusterOf(t, server)
	topic := c.topic(1, 1)
	must(t, server.Kill9(1))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	says(t, c.source(topic).Probe(ctx), kafka.ErrUnreachable, server.Addrs()[0], "nobody listens there")
}
