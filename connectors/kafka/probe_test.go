package kafka

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

func probe(t *testing.T, s *Source) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	started := time.Now()
	err := s.Probe(ctx)
	if took := time.Since(started); took > 8*time.Second {
		t.Errorf("the probe took %s", took)
	}
	return err
}

func TestProbeIsContentWithAWorkingCluster(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 6}})
	if err := probe(t, sourceOf(b, "orders")); err != nil {
		t.Fatal(err)
	}
	future := sourceOf(b)
	future.Pattern = "not-yet-.*"
	if err := probe(t, future); err != nil {
		t.Fatalf("a pattern that matches nothing yet: %v", err)
	}
}

// After a broker died its partitions still name it as their leader for some seconds.
func TestProbePassesWhileTheOnlyLeaderIsDown(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Brokers: 3, Topics: map[string]int32{"orders": 1}})
	down := b.Addrs()[b.Cluster().PartitionInfo("orders", 0).Leader]
	s := sourceOf(b, "orders")
	refuse := func(addresses ...string) kgo.Opt {
		return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if slices.Contains(addresses, address) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		})
	}
	s.Client = append(s.Client, refuse(down))
	if err := probe(t, s); err != nil {
		t.Errorf("one of three brokers is down: %v", err)
	}
	s.Client = append(s.Client, refuse(b.Addrs()...))
	says(t, probe(t, s), ErrUnreachable, "nobody listens there")
}

func TestProbeSaysThatTheConnectionIsRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test of this process with itself
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = probe(t, &Source{Brokers: []string{address}, Topics: []string{"orders"}})
	says(t, err, ErrUnreachable, address, "refused", "is the broker running")
}

func TestProbeSaysThatTheHostIsUnknown(t *testing.T) {
	t.Parallel()
	err := probe(t, &Source{Brokers: []string{"no-such-host.invalid:9092"}, Topics: []string{"orders"}})
	says(t, err, ErrUnreachable, "no-such-host.invalid:9092", "not known here")
}

func TestProbeSaysThatABrokerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test of this process with itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing was written
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s := &Source{Brokers: []string{l.Addr().String()}, Topics: []string{"orders"}}
	says(t, s.Probe(ctx), ErrUnreachable, l.Addr().String(), "no answer in time")
}

func TestProbeNamesAMissingTopicAndThoseThatExist(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "payments": 1}})
	says(t, probe(t, sourceOf(b, "order")), ErrTopicMissing, `"order"`, "create it, or correct topics", "orders, payments")
}

func TestProbeSaysThatALoginIsRequired(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}, Extra: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "bob", "secret")}})
	says(t, probe(t, sourceOf(b, "orders")), ErrUnreachable, b.Addrs()[0], "SASL")

	with := sourceOf(b, "orders")
	with.Client = append(with.Client, kgo.SASL(plain.Auth{User: "bob", Pass: "secret"}.AsMechanism()))
	if err := probe(t, with); err != nil {
		t.Fatalf("with the right password: %v", err)
	}
}

func TestProbeSaysThatThePortSpeaksNoTLS(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	s.DialTimeout = time.Second // kfake waits for the rest of what it takes for a large request, Kafka closes the connection
	s.Client = append(s.Client, kgo.DialTLS())
	says(t, probe(t, s), ErrUnreachable, b.Addrs()[0], "TLS")
}

func TestProbeSaysThatThePortExpectsTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test of this process with itself
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = l.Close() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 80}) // what a Java server answers: alert, fatal, internal error
			_ = conn.Close()
		}
	})
	err = probe(t, &Source{Brokers: []string{l.Addr().String()}, Topics: []string{"orders"}})
	says(t, err, ErrUnreachable, l.Addr().String(), "set tls")
	if e := connectionErrorIn(t, err); e.Trouble != ExpectsTLS || e.Option != "tls" {
		t.Errorf("%s, option %s", e.Trouble, e.Option)
	}
}

func TestProbeReportsAWrongConfigurationFirst(t *testing.T) {
	t.Parallel()
	says(t, probe(t, &Source{}), nil, "brokers:", "topics:")
}

func TestRefusedLoginsHaveASentinel(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]error{
		kerr.SaslAuthenticationFailed: ErrLogin,
		&net.DNSError{Name: "x"}:      ErrUnreachable,
	} {
		if got := unreachable(t.Context(), err, "no login"); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
