package kafka

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

func TestBrokerTroubleIsVisibleAndEndsWithTheTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newInstruments()
		h := newHealth(in, newLimitedLog(slog.New(slog.DiscardHandler)), "no login")
		gone := errors.New("connection refused")
		down := func(want float64) {
			t.Helper()
			if v, ok := in.get("brokers_unreachable"); !ok || v != want {
				t.Errorf("unreachable %v, present %t; want %v", v, ok, want)
			}
		}
		meta := func(id int32) kgo.BrokerMetadata { return kgo.BrokerMetadata{NodeID: id, Host: "broker", Port: id} }
		h.OnBrokerConnect(meta(1), 0, nil, gone)
		h.OnBrokerConnect(meta(2), 0, nil, gone)
		h.OnBrokerConnect(meta(2), 0, nil, gone)
		down(2)
		h.OnBrokerConnect(meta(1), 0, nil, context.Canceled) // this side gave up, which says nothing
		down(2)
		h.OnBrokerE2E(meta(1), 1, kgo.BrokerE2E{})
		down(1)
		if err := sleep(t.Context(), 2*forgetAfter); err != nil { // virtual time
			t.Fatal(err)
		}
		h.OnBrokerE2E(meta(1), 1, kgo.BrokerE2E{}) // broker 2 left the cluster and is not tried any more
		down(0)
		if v, _ := in.get("broker_errors"); v != 3 {
			t.Errorf("%v errors, want 3", v)
		}
		h.OnBrokerThrottle(meta(1), 1500*time.Millisecond, true)
		if v, _ := in.get("broker_throttled_milliseconds"); v != 1500 {
			t.Errorf("throttled %v ms", v)
		}
	})
}

// logged keeps the lines of a logger.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logged) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func TestABrokerThatDiesIsALineForEachChangeAndNotAskedForTLS(t *testing.T) {
	t.Parallel()
	b, err := kafkatest.NewBroker(kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	if err != nil {
		t.Fatal(err)
	}
	open := true
	defer func() {
		if open {
			b.Close()
		}
	}()
	produce(t, b, numbered("orders", 0, 0, 1)...)
	lines := new(logged)
	s := &Source{Brokers: b.Addrs(), Topics: []string{"orders"}, FetchMaxWait: 50 * time.Millisecond}
	u := readLogging(t, s, slog.New(slog.NewTextHandler(lines, nil)), splitsOf(t, s)...)
	u.records(1)
	address := b.Addrs()[0]
	b.Close()
	open = false
	u.awaitMetric("brokers_unreachable", func(v float64, _ bool) bool { return v == 1 })
	u.awaitMetric("broker_errors", func(v float64, _ bool) bool { return v > 8 })
	got := lines.all()
	text := strings.Join(got, "")
	if len(got) > 2 { // it broke off, and from then on nobody listened
		t.Errorf("%d lines:\n%s", len(got), text)
	}
	for _, want := range []string{`state="connection lost"`, `state="connection refused"`, "address=" + address} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %s:\n%s", want, text)
		}
	}
	for _, wrong := range []string{"expects TLS", "-2147483648", "SASL"} {
		if strings.Contains(text, wrong) {
			t.Errorf("something says %q:\n%s", wrong, text)
		}
	}
}

func TestAConnectionThatNeverWorkedMayExpectSomethingElse(t *testing.T) {
	t.Parallel()
	lines := new(logged)
	h := newHealth(newInstruments(), newLimitedLog(slog.New(slog.NewTextHandler(lines, nil))), "no login")
	h.OnBrokerConnect(kgo.BrokerMetadata{NodeID: -1 << 31, Host: "broker", Port: 9092}, 0, nil, syscall.ECONNRESET)
	if got := lines.all(); len(got) != 1 || !strings.Contains(got[0], "it expects TLS") || !strings.Contains(got[0], "address=broker:9092") {
		t.Errorf("logged %q", got)
	}
}
