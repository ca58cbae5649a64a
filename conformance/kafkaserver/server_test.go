package kafkaserver_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }

func TestASingleNodeServes(t *testing.T) {
	begin := time.Now()
	s := kafkaserver.Start(t, kafkaserver.Options{})
	t.Logf("ready after %s", time.Since(begin))
	ping(t, s.Addrs())
}

func TestAClusterServes(t *testing.T) {
	begin := time.Now()
	s := kafkaserver.SharedCluster(t)
	t.Logf("ready after %s", time.Since(begin))
	ping(t, s.Addrs())
}

func ping(t *testing.T, addrs []string, opts ...kgo.Opt) {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		t.Fatal(err)
	}
}
