package kafka

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
		meta := func(id int32) kgo.BrokerMetadata { return kgo.BrokerMetadata{NodeID: id} }
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
