package kafka

import (
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// health makes trouble with brokers visible, which the client keeps to itself while it retries for ever: each broker that cannot be
// used has a named state, which is logged when it changes and counted in gauges. Its methods are called by the client's goroutines.
type health struct {
	log   limitedLog
	login string

	errors    sdk.Counter
	throttled sdk.Counter
	down      sdk.Gauge
	refusing  sdk.Gauge
	handshake sdk.Gauge

	mu sync.Mutex
	// states are the brokers whose last attempt failed, by address: a client knows the same broker by its id and as one of those it
	// was told to begin with.
	states map[string]brokerState
	// worked are the addresses at which a request was answered, maxWorked of them.
	worked map[string]bool
}

// brokerState is why a broker could not be used, and when that was seen last.
type brokerState struct {
	trouble Trouble
	at      time.Time
}

// forgetAfter is when a broker that is not tried any more stops counting as unreachable: it may have left the cluster. One that
// is needed is tried far more often.
const forgetAfter = time.Minute

// maxWorked is far more than any cluster has brokers.
const maxWorked = 4096

var (
	_ kgo.HookBrokerConnect  = (*health)(nil)
	_ kgo.HookBrokerE2E      = (*health)(nil)
	_ kgo.HookBrokerThrottle = (*health)(nil)
)

func newHealth(m sdk.Metrics, log limitedLog, login string) *health {
	h := &health{
		log: log, login: login,
		errors:    m.Counter("broker_errors", "1", "Failed connections to brokers and requests that broke off."),
		throttled: m.Counter("broker_throttled_milliseconds", "ms", "Time that brokers made this reader wait because of a quota."),
		down:      m.Gauge("brokers_unreachable", "brokers", "Brokers whose last connection or request failed, within the last minute."),
		refusing:  m.Gauge("brokers_refusing_login", "brokers", "Those of them that refuse the login."),
		handshake: m.Gauge("brokers_failing_tls", "brokers", "Those of them with which no TLS connection can be made."),
		states:    make(map[string]brokerState), worked: make(map[string]bool),
	}
	h.countLocked() // nothing has failed yet, and nobody else has h
	return h
}

// OnBrokerConnect implements [kgo.HookBrokerConnect]. The error covers the login too.
func (h *health) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	h.result(meta, err)
}

// OnBrokerE2E implements [kgo.HookBrokerE2E]. The requests of a login work as requests, whatever the broker answers: what
// becomes of it is told with the connection.
func (h *health) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if err := e2e.Err(); err != nil || key != saslHandshake && key != saslAuthenticate && key != apiVersions {
		h.result(meta, err)
	}
}

// Keys of the requests by which a connection begins.
const (
	saslHandshake    = 17
	apiVersions      = 18
	saslAuthenticate = 36
)

// OnBrokerThrottle implements [kgo.HookBrokerThrottle].
func (h *health) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	h.throttled.Add(interval.Milliseconds())
}

func (h *health) result(meta kgo.BrokerMetadata, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, net.ErrClosed) {
		return // this side gave up: a wakeup, a close
	}
	at := address(meta)
	if err == nil {
		if h.well(at) {
			h.log.info("broker can be used again", "address", at)
		}
		return
	}
	h.errors.Add(1)
	if trouble, news := h.ill(at, err); news {
		h.log.warn("broker cannot be used", "address", at, "state", string(trouble.Trouble), "error", trouble)
	}
}

// well takes a success and reports that it ends a trouble.
func (h *health) well(at string) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 && h.worked[at] {
		return false // the common case: nothing to count
	}
	if len(h.worked) >= maxWorked {
		clear(h.worked) // brokers come and go at ever new addresses; the next answer enters those that are there
	}
	h.worked[at] = true
	_, news = h.states[at]
	delete(h.states, at)
	h.countLocked()
	return news
}

// ill takes a failure and reports that it is another one than before.
func (h *health) ill(at string, err error) (trouble *ConnectionError, news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	trouble = troubleOf(err, h.login)
	if h.worked[at] {
		trouble = lost(err, h.login)
	}
	before := h.states[at].trouble
	news = before != trouble.Trouble
	if trouble.Trouble == ConnectionLost && before != "" {
		// One more connection of the same broker, found broken later than the first: it says less than what is known by now.
		trouble.Trouble, news = before, false
	}
	h.states[at] = brokerState{trouble.Trouble, time.Now()}
	h.countLocked()
	return trouble, news
}

func (h *health) countLocked() {
	maps.DeleteFunc(h.states, func(_ string, s brokerState) bool { return time.Since(s.at) > forgetAfter })
	var login, handshake int
	for _, s := range h.states {
		switch s.trouble {
		case LoginRefused, NoCredentials:
			login++
		case UntrustedAuthority, OtherName, HandshakeFailed, ExpectsTLS:
			handshake++
		case UnknownHost, ConnectionRefused, ClosedAtOnce, ConnectionLost, NoAnswer, OtherTrouble:
		}
	}
	h.down.Set(float64(len(h.states)))
	h.refusing.Set(float64(login))
	h.handshake.Set(float64(handshake))
}

func address(meta kgo.BrokerMetadata) string {
	return net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
}
