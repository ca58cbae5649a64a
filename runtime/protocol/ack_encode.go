package protocol

import (
	"fmt"
	"math"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
)

// Encode returns the ack as a frame whose version is the protocol version. RetryAfter is rounded up to milliseconds.
func (a *Ack) Encode() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("encode %v: %w", ackFrame, err)
	}
	return seal(ackFrame, Version, &wire.Ack{
		Status: uint32(a.Status), Target: uint64(a.Target), MailboxSequence: a.MailboxSequence,
		RetryAfterMillis: uint64((a.RetryAfter + time.Millisecond - 1) / time.Millisecond), Reason: uint32(a.Reason),
	})
}

// maxRetryAfter keeps a hostile ack from parking a command for ever, and rounding from overflowing.
const maxRetryAfter = time.Hour

func (a *Ack) check() error {
	switch {
	case a.Status < Accepted || a.Status > InvalidPayload:
		return invalid("Status", a.Status, "an admission status")
	case a.Reason > ReasonReserved:
		return invalid("Reason", a.Reason, "an admission reason")
	case a.RetryAfter < 0 || a.RetryAfter > maxRetryAfter:
		return invalid("RetryAfter", a.RetryAfter, "0 to "+maxRetryAfter.String())
	}
	return nil
}

// DecodeAck decodes what [Ack.Encode] wrote.
func DecodeAck(b []byte) (*Ack, error) {
	body, err := open(ackFrame, Version, b)
	if err != nil {
		return nil, err
	}
	var m wire.Ack
	if err := unmarshal(body, &m, maxFixedElements); err != nil {
		return nil, corrupt(ackFrame, "%v", err)
	}
	if m.GetReason() > math.MaxUint8 {
		return nil, corrupt(ackFrame, "reason %d", m.GetReason())
	}
	a := &Ack{
		Status: narrow[Status](m.GetStatus()), Target: Attempt(m.GetTarget()), MailboxSequence: m.GetMailboxSequence(),
		RetryAfter: time.Duration(min(m.GetRetryAfterMillis(), uint64(maxRetryAfter))) * time.Millisecond, Reason: Reason(m.GetReason()),
	}
	if m.GetRetryAfterMillis() > uint64(maxRetryAfter/time.Millisecond) {
		return nil, corrupt(ackFrame, "retry after %d ms", m.GetRetryAfterMillis())
	}
	if err := a.check(); err != nil {
		return nil, corrupt(ackFrame, "%v", err)
	}
	return a, nil
}
