package exchange

import (
	"fmt"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Kind says how readers and sink tasks are joined.
type Kind string

// Kinds of exchange.
const (
	Forward   Kind = "forward"   // reader i to sink task i
	Rebalance Kind = "rebalance" // each batch to the next task that has credit
	Keyed     Kind = "keyed"     // equal keys to the same task; records without key by their split
)

// ParseKind reads a kind; empty is Forward.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case "":
		return Forward, nil
	case Forward, Rebalance, Keyed:
		return k, nil
	default:
		return "", fmt.Errorf("exchange %q is unknown (forward, rebalance, keyed)", s)
	}
}

// Router is one reader's side of its channels. The reader loop owns it.
type Router struct {
	kind     Kind
	channels []*Channel
	next     int          // rebalance: where to look first
	parts    []*sdk.Batch // keyed: one open batch per channel
}

// NewRouter returns a router over channels, one for Forward and one per sink task otherwise.
func NewRouter(kind Kind, channels []*Channel) *Router {
	return &Router{kind: kind, channels: channels, parts: make([]*sdk.Batch, len(channels))}
}

// Credit reports whether the output of one turn is certain to fit.
func (r *Router) Credit() bool {
	if r.kind == Rebalance {
		for i := range r.channels {
			if r.channels[(r.next+i)%len(r.channels)].Credit() {
				r.next = (r.next + i) % len(r.channels)
				return true
			}
		}
		return false
	}
	for _, c := range r.channels {
		if !c.Credit() {
			return false
		}
	}
	return true
}

// Get returns an empty batch for the next turn.
func (r *Router) Get() *sdk.Batch { return r.channels[r.next].Get() }

// Put gives back a batch that stayed empty.
func (r *Router) Put(b *sdk.Batch) { r.channels[r.next].Put(b) }

// Send routes a turn's batch, after Credit was true. It reports false when the attempt was fenced.
func (r *Router) Send(b *sdk.Batch) bool {
	if r.kind == Keyed && len(r.channels) > 1 {
		return r.sendKeyed(b)
	}
	ok := r.channels[r.next].Send(b)
	if r.kind == Rebalance {
		r.next = (r.next + 1) % len(r.channels)
	}
	return ok
}

func (r *Router) sendKeyed(b *sdk.Batch) bool {
	for rec := range b.All() {
		i := Route(rec, len(r.channels))
		if r.parts[i] == nil {
			r.parts[i] = r.channels[i].Get()
		}
		r.parts[i].Append(rec)
	}
	ok := true
	for i, part := range r.parts {
		if part != nil {
			ok = r.channels[i].Send(part) && ok
			r.parts[i] = nil
		}
	}
	r.Put(b)
	return ok
}

// Route is the task that a keyed exchange of n tasks sends rec to: FNV-1a of the key, or of the split when there is no key.
// It is the same in every process and every version.
func Route(rec *sdk.Record, n int) int {
	const offset, prime = uint64(14695981039346656037), uint64(1099511628211)
	h := offset
	if rec.Key != nil {
		for _, c := range rec.Key {
			h = (h ^ uint64(c)) * prime
		}
	} else {
		for i := range len(rec.Split) {
			h = (h ^ uint64(rec.Split[i])) * prime
		}
	}
	return int(h % uint64(n))
}

// Barrier sends b down every channel.
func (r *Router) Barrier(b protocol.BarrierPayload) bool {
	ok := true
	for _, c := range r.channels {
		ok = c.Barrier(b) && ok
	}
	return ok
}

// Flush makes sure that receivers know of everything sent.
func (r *Router) Flush() {
	for _, c := range r.channels {
		c.Flush()
	}
}

// Close fences the output. Any goroutine may call it.
func (r *Router) Close() {
	for _, c := range r.channels {
		c.Close()
	}
}
