package kafka

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// health makes trouble with brokers visible, which the client keeps to itself while it retries. Its methods are called
// by the client's goroutines.
type health struct {
	errors    sdk.Counter
	throttled sdk.Counter
	down      sdk.Gauge

	mu sync.Mutex
	// unreachable are the brokers whose last attempt failed, and when; at most one entry a broker and seed.
	unreachable map[int32]time.Time
}

// forgetAfter is when a broker that is not tried any more stops counting as unreachable: it may have left the cluster. One that
// is needed is tried far more often.
const forgetAfter = time.Minute

var (
	_ kgo.HookBrokerConnect  = (*health)(nil)
	_ kgo.HookBrokerE2E      = (*health)(nil)
	_ kgo.HookBrokerThrottle = (*health)(nil)
)

func newHealth(m sdk.Metrics) *health {
	return &health{
		errors:      m.Counter("broker_errors", "1", "Failed connections to brokers and requests that broke off."),
		throttled:   m.Counter("broker_throttled_milliseconds", "ms", "Time that brokers made this reader wait because of a quota."),
		down:        m.Gauge("brokers_unreachable", "brokers", "Brokers whose last connection or request failed, within the last minute."),
		unreachable: make(map[int32]time.Time),
	}
}

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (h *health) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	h.result(meta.NodeID, err)
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (h *health) OnBrokerE2E(meta kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	h.result(meta.NodeID, e2e.Err())
}

// OnBrokerThrottle implements [kgo.HookBrokerThrottle].
func (h *health) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	h.throttled.Add(interval.Milliseconds())
}

func (h *health) result(broker int32, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, net.ErrClosed) {
		return // this side gave up: a wakeup, a close
	}
	if err != nil {
		h.errors.Add(1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.unreachable[broker] = time.Now()
	} else {
		delete(h.unreachable, broker)
	}
	maps.DeleteFunc(h.unreachable, func(_ int32, at time.Time) bool { return time.Since(at) > forgetAfter })
	h.down.Set(float64(len(h.unreachable)))
}
