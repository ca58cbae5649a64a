package exchange

import (
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Gate is one sink task's side of its channels. The sink loop owns it.
type Gate struct {
	inputs  []*Channel
	blocked []bool // the barrier of the running alignment has arrived here
	next    int    // fairness: where to look first

	aligning protocol.BarrierPayload // Checkpoint 0 when no alignment runs
	arrived  int
	settled  sdk.CheckpointID // newest checkpoint whose alignment is over, done or given up
}

// NewGate returns a gate over inputs.
func NewGate(inputs []*Channel) *Gate {
	return &Gate{inputs: inputs, blocked: make([]bool, len(inputs))}
}

// Next takes the next batch, or a barrier once it is aligned. from is the channel that a batch goes back to. ok is false
// when nothing can be taken now.
func (g *Gate) Next() (it Item, from *Channel, ok bool) {
	for tried := 0; tried < len(g.inputs); {
		i := g.next
		if !g.blocked[i] {
			if it, ok := g.inputs[i].Receive(); ok {
				if it.Batch != nil {
					g.advance()
					return it, g.inputs[i], true
				}
				if g.arrive(i, it.Barrier) {
					return it, nil, true
				}
				tried = 0 // blocked sets have changed
				continue
			}
		}
		g.advance()
		tried++
	}
	return Item{}, nil, false
}

func (g *Gate) advance() { g.next = (g.next + 1) % len(g.inputs) }

// arrive notes a barrier of input i and reports whether the alignment is complete.
func (g *Gate) arrive(i int, b protocol.BarrierPayload) bool {
	if b.Checkpoint <= g.settled || b.Checkpoint < g.aligning.Checkpoint {
		return false // given up before it arrived
	}
	if b.Checkpoint > g.aligning.Checkpoint {
		// A newer checkpoint only starts after the older one was given up.
		g.release()
		g.aligning = b
	}
	g.blocked[i] = true
	g.arrived++
	if g.arrived < len(g.inputs) {
		return false
	}
	g.settled = b.Checkpoint
	g.release()
	return true
}

// Abort gives up the alignment of id and of everything before it, so that nothing waits for barriers that never come.
func (g *Gate) Abort(id sdk.CheckpointID) {
	g.settled = max(g.settled, id)
	if g.aligning.Checkpoint != 0 && g.aligning.Checkpoint <= id {
		g.release()
	}
}

func (g *Gate) release() {
	clear(g.blocked)
	g.arrived, g.aligning = 0, protocol.BarrierPayload{}
}

// Queued is what waits in all inputs.
func (g *Gate) Queued() (batches int, bytes int64) {
	for _, c := range g.inputs {
		n, b := c.Queued()
		batches, bytes = batches+n, bytes+b
	}
	return batches, bytes
}

// Aligning is the checkpoint that is being aligned, or 0.
func (g *Gate) Aligning() sdk.CheckpointID { return g.aligning.Checkpoint }
