package coordinator

import (
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// target is one reader as the coordinator sees it. The loop owns it.
type target struct {
	id       sdk.ReaderID
	attempt  protocol.Attempt
	mailbox  Mailbox
	stats    *telemetry.Reader
	sequence protocol.Sequence

	answer     *reader.Registration // nil until it registered with this epoch
	registered bool                 // the enumerator knows of it
	request    bool                 // it wants a split, and the enumerator was not told
	open       bool                 // the dispatch gate

	// queue holds commands in order that wait for the gate, for room in the mailbox, or for registration. Assignments in it
	// are bounded by the tracker, events by maxReaderEvents, the rest by there being one of each.
	queue    []*protocol.Envelope
	events   int           // events in queue
	backoff  time.Duration // of the retry that is under way, 0 when none is
	retrying bool
}

// command builds the next envelope for t. A payload that cannot be encoded fails; no sequence is used up then.
func (l *Loop) command(t *target, kind protocol.CommandKind, p protocol.Payload) (*protocol.Envelope, error) {
	e, err := protocol.NewEnvelope(protocol.Header{
		Job: l.cfg.Job, SourceRuntime: l.cfg.Source.Capability().Connector, Epoch: l.cfg.Epoch, Sender: protocol.Attempt(l.cfg.Epoch),
		Target: t.attempt, Sequence: t.sequence + 1, Command: l.commands + 1, Kind: kind,
	}, p)
	if err != nil {
		return nil, fmt.Errorf("command to reader %d: %w", t.id, err)
	}
	t.sequence++
	l.commands++
	l.reach(at(seam.CommandCreated, t, e))
	return e, nil
}

// send queues an ordinary command and lets it go when the gate is open.
func (l *Loop) send(t *target, e *protocol.Envelope) {
	t.queue = append(t.queue, e)
	l.flush(t)
}

// flush offers what waits, in order, until the gate or the mailbox stops it.
func (l *Loop) flush(t *target) {
	for t.open && !t.retrying && len(t.queue) > 0 {
		e := t.queue[0]
		if !l.offer(t, e) {
			return
		}
		t.queue[0] = nil
		t.queue = t.queue[1:]
		if e.Kind == protocol.SourceEvent {
			t.events--
		}
	}
	if len(t.queue) == 0 {
		t.queue = nil
	}
}

func at(p seam.Point, t *target, e *protocol.Envelope) seam.At {
	return seam.At{Point: p, Reader: t.id, Attempt: t.attempt, Kind: e.Kind, Sequence: e.Sequence}
}

// offer reports false when the command is to be offered again.
func (l *Loop) offer(t *target, e *protocol.Envelope) bool {
	if !l.reach(at(seam.OperationSend, t, e)) {
		return true // the next epoch sends what this one still had
	}
	start := l.cfg.Now()
	ack := t.mailbox.Offer(e)
	t.stats.Admission.Observe(l.cfg.Now().Sub(start))
	t.stats.Admitted(ack.Status, ack.Reason)
	switch ack.Status {
	case protocol.Accepted, protocol.Duplicate:
		if !l.reach(at(seam.AdmissionAcknowledged, t, e)) {
			return true
		}
		t.backoff = 0
		if e.Kind == protocol.AddSplits {
			l.tracker.Admitted(t.id, e.Sequence)
		}
		return true
	case protocol.RetryLater:
		l.retry(t, ack.RetryAfter)
		return false
	case protocol.StaleTarget:
		return true // the reader is being replaced; its assignments are returned when the new attempt registers
	case protocol.TerminalRejected:
		if ack.Reason == protocol.ReasonReserved {
			l.cfg.Reports.ReaderBroken(t.id, t.attempt, ErrReserved)
		}
		return true
	case protocol.UnsupportedProtocol, protocol.InvalidPayload:
		l.fail(sdk.Fatalf("reader %d refused its own engine's command %s: %s (%s)", t.id, e.Kind, ack.Status, ack.Reason))
		return true
	default:
		l.fail(sdk.Fatalf("reader %d answered the unknown status %d", t.id, ack.Status))
		return true
	}
}

// retry offers the head of the queue again later, with exponential back-off.
func (l *Loop) retry(t *target, hint time.Duration) {
	t.retrying = true
	t.backoff = min(max(2*t.backoff, hint, l.cfg.RetryInitial), l.cfg.RetryMax)
	l.cfg.Stats.Retries.Inc()
	attempt := t.attempt
	l.timer(t.backoff, "retry", func() error {
		if l.targets[t.id] == t && t.attempt == attempt {
			t.retrying = false
			l.flush(t)
		}
		return nil
	})
}

// control offers a command that has reserved capacity. It passes the queue: a barrier does not wait for an assignment
// that the mailbox refused.
func (l *Loop) control(t *target, kind protocol.CommandKind, p protocol.Payload) protocol.Status {
	e, err := l.command(t, kind, p)
	if err != nil {
		l.fail(sdk.Fatal(err))
		return protocol.InvalidPayload
	}
	start := l.cfg.Now()
	ack := t.mailbox.Offer(e)
	t.stats.Admission.Observe(l.cfg.Now().Sub(start))
	t.stats.Admitted(ack.Status, ack.Reason)
	if ack.Status == protocol.TerminalRejected && ack.Reason == protocol.ReasonReserved {
		l.cfg.Reports.ReaderBroken(t.id, t.attempt, ErrReserved)
	}
	return ack.Status
}
