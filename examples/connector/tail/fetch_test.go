package tail

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

var _ base.SplitReader[message, Split] = (*fetcher)(nil)

// The server of this test writes into a pipe without a buffer, so what it has got rid of is what the source holds: its buffer, the message that waits
// for room there, and the lines of the write that was read from last.
func TestAFullBufferHoldsTheServerBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const buffer = 10
		w.publish("a", 1000)
		f := w.fetcher(buffer, Split{Topic: "a", Next: 1})
		defer w.close(f)
		pass(time.Hour)
		synctest.Wait()
		r := f.receivers["a"]
		if len(r.messages) != buffer || r.next != buffer+1 {
			t.Errorf("nobody fetched for an hour: %d messages wait, the next one is %d, want %d and %d", len(r.messages), r.next, buffer, buffer+1)
		}
		if n := w.server.Followers("a"); n != 1 {
			t.Errorf("%d connections follow the topic", n)
		}
		w.want(f, "a", 1, 1000)
	})
}

// A wakeup ends the wait and nothing else: no connection breaks, and what came meanwhile comes next.
func TestAWakeupLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 0)
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		for n := range int64(50) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(sdk.ErrWakeup) })
			got, err := f.Fetch(ctx)
			if !errors.Is(err, sdk.ErrWakeup) || len(got.Chunks) > 0 {
				t.Fatalf("a fetch that was woken up answered %+v, error %v", got, err)
			}
			w.publish("a", 1)
			synctest.Wait()
			w.want(f, "a", n+1, n+1)
		}
		if n := w.dials.Load(); n != 1 {
			t.Errorf("%d connections were made", n)
		}
	})
}

func TestABrokenConnectionGoesOnWhereItWas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 0)
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		for n := range int64(20) {
			w.publish("a", 5)
			if n%2 == 0 { // sometimes before they are fetched, sometimes after
				w.network.Drop()
			}
			w.want(f, "a", 5*n+1, 5*n+5)
			w.network.Drop()
			pass(time.Minute) // altogether longer than a server may be away
		}
	})
}

// A server that says nothing is gone, although nobody closed the connection: a machine was switched off, or a firewall forgot it.
func TestASilentServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 1)
		alive := w.source.Dial
		w.source.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if w.dials.Add(1) > 1 {
				return alive(ctx, network, address)
			}
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return client, nil
		}
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		began := time.Now()
		w.want(f, "a", 1, 1)
		if took := time.Since(began); took < maxSilent || took > maxSilent+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAServerThatStaysAwayIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 3)
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		w.want(f, "a", 1, 3)
		began, before := time.Now(), w.dials.Load()
		w.away.Store(true)
		w.network.Drop()
		w.fails(f, errAway, `topic "a"`, "no connection for 15m")
		if took := time.Since(began); took < DefaultGiveUp || took > DefaultGiveUp+time.Minute {
			t.Errorf("it gave up after %s", took)
		}
		if n := w.dials.Load() - before; n < 40 || n > 70 {
			t.Errorf("it tried %d times", n)
		}
	})
}

// What was received before a failure is fetched with it, or before it.
func TestMessagesComeBeforeTheFailureBehindThem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("good", 5)
		f := w.fetcher(10, Split{Topic: "good", Next: 1}, Split{Topic: "missing", Next: 1})
		defer w.close(f)
		pass(time.Second)
		got, err := f.Fetch(t.Context())
		if !errors.Is(err, ErrUnknown) || !errors.Is(err, sdk.ErrFatal) || len(got.Chunks) != 1 || len(got.Chunks[0].Elements) != 5 {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

// A paused topic is held back at the server, and others are not.
func TestAPausedTopicWaitsAtTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 100)
		w.publish("b", 100)
		f := w.fetcher(10, Split{Topic: "a", Next: 1}, Split{Topic: "b", Next: 1})
		defer w.close(f)
		w.change(f, base.Change[Split]{Paused: []sdk.SplitID{"a"}})
		w.want(f, "b", 1, 100)
		synctest.Wait() // its connection may have come later
		if n := len(f.receivers["a"].messages); n != 10 {
			t.Errorf("%d messages of the paused topic wait here", n)
		}
		w.change(f, base.Change[Split]{Resumed: []sdk.SplitID{"a"}})
		w.want(f, "a", 1, 100)
	})
}

func TestARemovedTopicIsNotFollowed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 100)
		w.publish("b", 1)
		f := w.fetcher(10, Split{Topic: "a", Next: 1}, Split{Topic: "b", Next: 1})
		defer w.close(f)
		synctest.Wait()
		w.change(f, base.Change[Split]{Removed: []sdk.SplitID{"a"}})
		w.want(f, "b", 1, 1)
		pass(time.Minute)
		if n := w.server.Followers("a"); n != 0 {
			t.Errorf("%d connections follow a topic that was removed", n)
		}
	})
}

func TestATopicEndsWhereItEndedWhenItWasDiscovered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Once = true
		w.publish("a", 25)
		w.publish("empty", 0)
		splits, err := w.source.discover(t.Context(), base.Round{})
		if err != nil {
			t.Fatal(err)
		}
		w.publish("a", 25)
		w.publish("empty", 25)
		f := w.fetcher(10, splits...)
		defer w.close(f)
		var finished []sdk.SplitID
		messages := 0
		for len(f.receivers) > 0 {
			got, err := f.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			finished = append(finished, got.Finished...)
			for _, c := range got.Chunks {
				messages += len(c.Elements)
			}
		}
		if messages != 25 || len(finished) != 2 {
			t.Errorf("%d messages, finished %v", messages, finished)
		}
	})
}

func TestWhatIsCheckpointedIsAcknowledgedAndMayBeForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 10)
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		w.want(f, "a", 1, 10)
		pass(time.Minute)
		if n := w.server.Acknowledged("a"); n != 0 {
			t.Errorf("what nobody has checkpointed was acknowledged up to %d", n)
		}
		w.acks.set([]Split{{Topic: "a", Next: 8}})
		pass(time.Minute)
		if n := w.server.Acknowledged("a"); n != 8 {
			t.Errorf("acknowledged up to %d, want 8", n)
		}
		if n := w.server.Trim("a"); n != 3 {
			t.Errorf("%d messages are kept, want 3", n)
		}
		w.close(f)

		again := w.fetcher(10, Split{Topic: "a", Next: 8}) // from the checkpoint
		w.want(again, "a", 8, 10)
		w.close(again)
		older := w.fetcher(10, Split{Topic: "a", Next: 7}) // from one before it
		defer w.close(older)
		w.fails(older, ErrGone, `topic "a"`, "message 6", "kept from message 8 on", "empty state directory")
	})
}

// Acknowledgements come also while there is always more to send.
func TestABusyTopicIsAcknowledgedToo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.publish("a", 2000)
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		w.acks.set([]Split{{Topic: "a", Next: 2}})
		for messages := 0; messages < 2000; {
			got, err := f.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			messages += len(got.Chunks[0].Elements)
			pass(100 * time.Millisecond)
			if n := w.server.Acknowledged("a"); messages > 1000 && n != 2 {
				t.Fatalf("after %d of 2000 messages the server has an acknowledgement up to %d, want 2", messages, n)
			}
		}
	})
}
