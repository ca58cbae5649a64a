package simulation

import (
	"sync"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// order checks what commands do between admission and effect: they are applied in the order of their admission, each once, and no
// reader begins a second turn while one waits.
type order struct {
	of *life
	mu struct {
		sync.Mutex
		admitted map[channelKey][]admittedCommand // in order, and not applied yet
		turns    map[protocol.Attempt]int         // begun
		tasks    map[sdk.ReaderID]protocol.Attempt
	}
}

// channelKey is one coordinator epoch sending to one attempt.
type channelKey struct {
	attempt protocol.Attempt
	epoch   protocol.Epoch
}

type admittedCommand struct {
	sequence protocol.Sequence
	turns    int // of the attempt, when it was admitted
}

func newOrder(of *life) *order {
	o := &order{of: of}
	o.mu.admitted, o.mu.turns = map[channelKey][]admittedCommand{}, map[protocol.Attempt]int{}
	o.mu.tasks = map[sdk.ReaderID]protocol.Attempt{}
	return o
}

// offered wraps a delivery. It notes the command before it is delivered, for it may be applied at once.
func (o *order) offered(e *protocol.Envelope, deliver func(*protocol.Envelope) protocol.Ack) func(*protocol.Envelope) protocol.Ack {
	if e.Kind == protocol.Register {
		return deliver // has its effect before any point
	}
	return func(*protocol.Envelope) protocol.Ack {
		key := channelKey{e.Target, e.Epoch}
		o.mu.Lock()
		o.mu.admitted[key] = append(o.mu.admitted[key], admittedCommand{e.Sequence, o.mu.turns[e.Target]})
		o.mu.Unlock()
		began := time.Now()
		ack := deliver(e)
		if took := time.Since(began); took > 0 {
			o.of.violate("admission of %s took %s", e.Kind, took)
		}
		if ack.Status != protocol.Accepted {
			o.withdraw(key, e.Sequence)
		} else {
			o.wait(key, e.Sequence)
		}
		return ack
	}
}

// wait begins to count turns for a command that was admitted, if it was not applied in the meantime. Where the order of goroutines is left to
// chance, the reader may have gone on for many turns between the note and the admission.
func (o *order) wait(key channelKey, seq protocol.Sequence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.mu.admitted[key] {
		if c := &o.mu.admitted[key][i]; c.sequence == seq {
			c.turns = o.mu.turns[key.attempt]
		}
	}
}

// withdraw takes back the newest entry of a sequence, which was not admitted.
func (o *order) withdraw(key channelKey, seq protocol.Sequence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.mu.admitted[key]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].sequence == seq {
			o.mu.admitted[key] = append(list[:i], list[i+1:]...)
			return
		}
	}
}

// turn notes that a reader begins a turn.
func (o *order) turn(task sdk.ReaderID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.turns[o.mu.tasks[task]]++
}

// begins notes which attempt runs a task: its turns are counted under that number.
func (o *order) begins(at seam.At) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.tasks[at.Reader] = max(o.mu.tasks[at.Reader], at.Attempt)
}

// applied checks a command that had its effect, or whose snapshot is taken.
func (o *order) applied(at seam.At) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := channelKey{at.Attempt, at.Epoch}
	list := o.mu.admitted[key]
	for i, c := range list {
		if c.sequence != at.Sequence {
			continue
		}
		if i > 0 {
			o.of.violate("attempt %d applies %s %d of epoch %d before %d, which was admitted earlier", at.Attempt, at.Kind, at.Sequence, at.Epoch, list[0].sequence)
		}
		if n := o.mu.turns[at.Attempt] - c.turns; n > 1 && o.mu.tasks[at.Reader] == at.Attempt {
			o.of.violate("attempt %d began %d turns before it applied %s %d", at.Attempt, n, at.Kind, at.Sequence)
		}
		o.mu.admitted[key] = append([]admittedCommand(nil), list[i+1:]...)
		return
	}
	o.of.violate("attempt %d applies %s %d of epoch %d, which waits for nothing", at.Attempt, at.Kind, at.Sequence, at.Epoch)
}
