package kinesis

import (
	"errors"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

func fanOut(s *Source) { s.Consumer = "penstock" }

func TestEnhancedFanOutRegistersItsConsumerAndReads(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, fanOut, func(w *world) {
		w.put(0, 100)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 100 })
		w.put(100, 100)
		w.until(time.Minute, func() bool { return len(w.all()) == 200 })
		w.each(w.all(), 0, 200)
		if n := w.srv.Calls("GetRecords"); n > 0 {
			t.Errorf("%d polls", n)
		}
	})
}

// E54: the end after five minutes, again and again, with and without records.
func TestASubscriptionThatEndsGoesOnFromItsContinuation(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, fanOut, func(w *world) {
		w.start()
		written := 0
		for range 2 {
			w.put(written, 10)
			written += 10
			w.run(4 * time.Minute)
			w.run(8 * time.Minute) // without records
		}
		w.checkpoint()
		w.each(w.committed(), 0, written)
		if n := w.srv.Calls("SubscribeToShard"); n < 8 || n > 12 {
			t.Errorf("%d subscriptions of two shards in 24 minutes", n)
		}
	})
}

// E57: the end of a shard, and an event that cannot be one.
func TestTheEndOfAShardIsAnEventWithoutContinuation(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, fanOut, func(w *world) {
		w.put(0, 40)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 40 })
		w.must(w.srv.Reshard("orders", 3))
		w.put(40, 40)
		w.until(time.Minute, func() bool { return len(w.all()) == 80 })
		w.checkpoint()
		w.each(w.committed(), 0, 80)
	})
}

func TestSilentStreamsAreSubscribedAnew(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, fanOut, func(w *world) {
		w.put(0, 10)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 10 })
		hang := w.srv.Inject(kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Effect: kinesistest.Hang()})
		w.put(10, 10)
		if !w.until(2*time.Minute, func() bool { return len(w.all()) == 20 }) {
			t.Fatalf("%d records; the fault hit %d times", len(w.all()), hang.Hits())
		}
		w.each(w.all(), 0, 20)
	})
}

// E13 of subscriptions: whatever breaks, nothing is lost or doubled.
func TestBrokenSubscriptionsLoseNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, fanOut, func(w *world) {
		written := 0
		write := func() {
			w.put(written, 10)
			written += 10
		}
		write()
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 10 })
		for _, effect := range []kinesistest.Effect{
			kinesistest.Cut(), kinesistest.Corrupt(), kinesistest.EndStream(), kinesistest.InternalError(), kinesistest.Throttle(), kinesistest.LimitExceeded(),
		} {
			w.srv.Inject(kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Effect: effect})
			write()
			w.until(2*time.Minute, func() bool { return len(w.all()) == written })
		}
		for _, effect := range []kinesistest.Effect{kinesistest.Throttle(), kinesistest.Reset(), kinesistest.LimitExceeded(), kinesistest.InternalError()} {
			w.srv.Inject(kinesistest.Fault{Operation: "SubscribeToShard", Effect: effect})
			w.srv.Inject(kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Effect: kinesistest.EndStream()})
			write()
			w.until(2*time.Minute, func() bool { return len(w.all()) == written })
		}
		w.each(w.all(), 0, written)
	})
}

// E56: a reader that comes right after another waits; one that loses its subscription to another stops.
func TestAReaderThatIsTakenOverStopsInsteadOfTakingBack(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, fanOut, func(w *world) {
		w.put(0, 10)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 10 })
		w.checkpoint()
		zombie := w.tasks[0]
		w.put(10, 10)
		w.run(10 * time.Second)
		w.tasks = nil
		_ = w.enum.Close()
		w.start() // while the other one still reads
		w.until(time.Minute, func() bool { return len(w.all()) == 20 })
		w.each(w.all(), 0, 20)
		_, err := zombie.poll()
		for range 100 {
			if err != nil {
				break
			}
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			_, err = zombie.poll()
		}
		if !errors.Is(err, ErrConsumer) {
			t.Errorf("the reader that was taken over says %v", err)
		}
		calls := w.srv.Calls("SubscribeToShard")
		w.run(time.Minute)
		if n := w.srv.Calls("SubscribeToShard"); n != calls {
			t.Errorf("%d more subscriptions: the two fight for the shard", n-calls)
		}
		_ = zombie.r.Close()
	})
}

// A reader that begins while the service does not answer waits for it, as one that polls does, and does not use up the restarts of its job.
func TestASubscriberOutlastsAnOutageAtItsStart(t *testing.T) {
	t.Parallel()
	for operation, skip := range map[string]int{"DescribeStreamSummary": 1 /* of the enumerator */, "DescribeStreamConsumer": 0} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, fanOut, func(w *world) {
				hung := w.srv.Inject(kinesistest.Fault{Operation: operation, Skip: skip, Times: kinesistest.Always, Effect: kinesistest.Hang()})
				w.put(0, 10)
				w.start()
				w.run(7 * time.Minute)
				if err := w.problem(); err != nil || hung.Hits() == 0 {
					t.Fatalf("after %d requests that hung: %v", hung.Hits(), err)
				}
				hung.Remove()
				w.arrive(10)
				w.each(w.all(), 0, 10)
			})
		})
	}
}

func TestAMissingConsumerIsNamed(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) {
		s.Consumer = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/nobody:1"
	}, func(w *world) {
		w.start()
		w.run(time.Minute)
		if !errors.Is(w.err, ErrConsumer) {
			t.Errorf("error %v", w.err)
		}
	})
}

// E54 in checkpoints: the continuation moves without records too, so a shard that never had one has a place that is not its beginning.
func TestAnIdleSubscriptionMovesThePosition(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, fanOut, func(w *world) {
		w.start()
		w.run(2 * time.Minute)
		w.checkpoint()
		p := w.last.splits[0][0].Position
		if p.Kind != lineage.AfterSequence || p.Millis == 0 {
			t.Errorf("the position is %s, seen %d", p, p.Millis)
		}
		w.kill()
		w.put(0, 10)
		w.start()
		w.arrive(10)
		w.each(w.all(), 0, 10)
	})
}
