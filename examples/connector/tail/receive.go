package tail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// receiver follows one topic. Two goroutines have to do with it: its own, which runs run, and the fetcher's; the channel is where a message goes
// from the one to the other.
type receiver struct {
	topic    string
	stop     int64
	messages chan message // the buffer

	// The receiver's own.
	next int64 // to put into the buffer

	// The fetcher's own.
	cancel context.CancelFunc
	taken  int64 // the next one to take out
	paused bool
}

// ended reports that everything up to the stop was taken.
func (r *receiver) ended() bool { return r.stop > 0 && r.taken >= r.stop }

// run follows the topic until its stop or the end of ctx, through broken connections, and answers why it could not.
func (r *receiver) run(ctx context.Context, s *shared) error {
	var away time.Time // since then
	for failures := 0; ; {
		alive, err := r.follow(ctx, s)
		switch {
		case ctx.Err() != nil, err == nil:
			return nil
		case errors.Is(err, ErrGone):
			return sdk.Fatalf("topic %q: what follows message %d was never read, and is not kept any more: %w. To go on with what there is, give the job "+
				"an empty state directory and its sink another place", r.topic, r.next-1, err)
		case errors.Is(err, ErrUnknown):
			return sdk.Fatalf("topic %q: %w. If it was deleted for good, the job needs a new state directory", r.topic, err)
		}
		if alive {
			failures = 0
		}
		if failures++; failures == 1 {
			away = time.Now()
		}
		if gone := time.Since(away); gone >= s.giveUp {
			return fmt.Errorf("topic %q: no connection for %s: %w", r.topic, gone.Round(time.Second), err)
		}
		s.reconnects.Add(1)
		s.log.Warn("a connection broke and is made again", "topic", r.topic, "from", r.next, "failures", failures, "error", err)
		if !pause(ctx, failures) {
			return nil
		}
	}
}

// follow is one connection. It answers nil when the stop was reached; alive reports that the server did what it is there for.
func (r *receiver) follow(ctx context.Context, s *shared) (alive bool, err error) {
	c, err := s.source.connect(ctx)
	if err != nil {
		return false, err
	}
	defer c.close()
	if err := c.say("TAIL %s %d", r.topic, r.next); err != nil {
		return false, err
	}
	for r.stop == 0 || r.next < r.stop {
		h, err := c.hear()
		if err != nil {
			return alive, err
		}
		switch h.word {
		case wordPing:
			if err := c.say("ACK %d", s.acks.of(r.topic)); err != nil {
				return alive, err
			}
		case wordMessage:
			if h.number != r.next { // a gap would be silent loss: ask for what is missing
				return alive, fmt.Errorf("%w: message %d came where %d was due", ErrProtocol, h.number, r.next)
			}
			if !r.put(ctx, s, h.message) {
				return alive, context.Cause(ctx)
			}
		default:
			return alive, fmt.Errorf("%w: it said %s to somebody who follows a topic", ErrProtocol, h.word)
		}
		alive = true
	}
	return alive, nil
}

// put waits for room in the buffer. Nothing is read from the socket meanwhile, and that is what holds the server back.
func (r *receiver) put(ctx context.Context, s *shared, m message) bool {
	select {
	case r.messages <- m:
	case <-ctx.Done():
		return false
	}
	r.next++
	s.ring() // after the message is there, or Fetch could look, find nothing, and sleep through it
	return true
}

// Bounds of the pauses between connections that fail.
const (
	minBackOff = 100 * time.Millisecond
	maxBackOff = 20 * time.Second
)

// pause waits after so many failures in a row, twice as long each time. It reports false when ctx ends.
func pause(ctx context.Context, failures int) bool {
	wait := minBackOff
	for ; failures > 1 && wait < maxBackOff; failures-- {
		wait *= 2
	}
	timer := time.NewTimer(min(wait, maxBackOff))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
