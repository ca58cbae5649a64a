package kinesis

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

const (
	// maxAssign is how many shards one call carries.
	maxAssign = 100
	// assignRetry is how long a refused assignment waits when no checkpoint completes before.
	assignRetry = time.Second
)

// distribute gives ready shards to readers, and says when no more will follow. It first does so when every reader has registered once:
// before that nobody knows what they still hold from before a restart.
func (e *enumerator) distribute() error {
	defer e.meters.measure(e.top)
	if len(e.registered) < e.ctx.Parallelism() {
		return nil
	}
	for _, a := range e.plan() {
		err := e.assign(a.reader, a.shards)
		if errors.Is(err, sdk.ErrBackpressure) {
			e.ctx.Schedule(keyAssign, assignRetry, e.retry)
			return nil
		}
		if err != nil {
			return fmt.Errorf("kinesis: assign %d shards to reader %d: %w", len(a.shards), a.reader, err)
		}
	}
	return e.tellNoMore()
}

func (e *enumerator) retry() {
	if e.closed {
		return
	}
	if err := e.distribute(); err != nil {
		e.fail(err)
	}
}

// assignment is one call of Assign.
type assignment struct {
	reader sdk.ReaderID
	shards []lineage.Node
}

// plan places ready shards on the readers that hold the fewest, in the order in which they became ready.
func (e *enumerator) plan() []assignment {
	readers := e.ctx.Readers()
	ready := e.top.Ready()
	if len(readers) == 0 || len(ready) == 0 {
		return nil
	}
	owned := append([]int(nil), e.top.Owned()...)
	p := base.Placement{Parallelism: e.ctx.Parallelism(), Readers: readers, Owned: owned}
	byReader := make(map[sdk.ReaderID][]lineage.Node, len(readers))
	for _, n := range ready {
		r := base.LeastLoaded(Split{}, p)
		owned[r]++
		byReader[r] = append(byReader[r], n)
	}
	var plan []assignment
	for _, r := range readers {
		for shards := byReader[r]; len(shards) > 0; {
			n := min(len(shards), maxAssign)
			plan = append(plan, assignment{r, shards[:n]})
			shards = shards[n:]
		}
	}
	return plan
}

// assign hands shards over, in halves of halves when the engine refuses them together: its bound may be smaller than the whole.
func (e *enumerator) assign(reader sdk.ReaderID, shards []lineage.Node) error {
	splits := make([]Split, len(shards))
	for i, n := range shards {
		splits[i] = Split{Shard: n.ID, Created: e.top.Created(), Position: n.Position, Stop: e.top.Stop(), Hashes: n.Hashes}
	}
	err := e.ctx.Assign(reader, splits)
	if errors.Is(err, sdk.ErrBackpressure) && len(shards) > 1 {
		half := len(shards) / 2
		if err := e.assign(reader, shards[:half]); err != nil {
			return err
		}
		return e.assign(reader, shards[half:])
	}
	if err != nil {
		return err
	}
	for _, n := range shards {
		if err := e.top.Assigned(n.ID, reader); err != nil {
			return err
		}
	}
	return nil
}

// tellNoMore ends a bounded job once everything before its stop was read, and a completed checkpoint says so.
func (e *enumerator) tellNoMore() error {
	if !e.bounded() || !e.top.Done() {
		return nil
	}
	for _, r := range e.ctx.Readers() {
		if e.told[r] {
			continue
		}
		if err := e.ctx.NoMoreSplits(r); err != nil {
			return fmt.Errorf("kinesis: tell reader %d that no more shards follow: %w", r, err)
		}
		e.told[r] = true
	}
	return nil
}

// topologyMeters are the enumerator's instruments.
type topologyMeters struct {
	looks, failures, lost sdk.Counter
	states                [len(lineage.States)]sdk.Gauge
}

func newTopologyMeters(m sdk.Metrics) topologyMeters {
	t := topologyMeters{
		looks:    m.Counter("discoveries", "{discovery}", "Looks at the stream's shards that were recorded."),
		failures: m.Counter("discovery_failures", "{discovery}", "Looks that failed and are tried again."),
		lost:     m.Counter("lost_shards", "{shard}", "Shards that expired before they were read to their end, where the policy is to go on."),
	}
	for s, name := range [...]string{"shards_discovered", "shards_pending_parent", "shards_active", "shards_draining", "shards_completed"} {
		t.states[s] = m.Gauge(name, "{shard}", "Shards of the stream that are "+lineage.State(s).String()+".")
	}
	return t
}

func (t *topologyMeters) measure(top *lineage.Topology) {
	for state, n := range top.Count() {
		t.states[state].Set(float64(n))
	}
}
