package lineage

import (
	"fmt"

	"github.com/penstock-dev/penstock/sdk"
)

// BatchID numbers the batches of starts that are to be made concrete. An answer to an older one is stale.
type BatchID uint64

// Batch returns the shards whose start is to be made concrete, ascending, and the number with which the answer is to come. It is empty when
// there is nothing to do.
func (t *Topology) Batch() (BatchID, []string) {
	if t.unresolved == 0 {
		return t.batch, nil
	}
	ids := make([]string, 0, t.unresolved)
	for _, n := range t.sorted() {
		if n.unresolved() {
			ids = append(ids, n.id)
		}
	}
	return t.batch, ids
}

// Cancel makes every answer to a batch that was handed out before stale.
func (t *Topology) Cancel() { t.batch++ }

// Resolve takes the answer to a batch, all of it or nothing: it must name a concrete position for every shard of the batch. It reports
// false for a stale answer, which changes nothing. A position that is concrete already is never overwritten, whatever the answer says of
// it. Shards of the batch that were closed or split meanwhile are part of it all the same.
func (t *Topology) Resolve(id BatchID, positions map[string]Position) (applied bool, err error) {
	if id != t.batch || t.unresolved == 0 {
		return false, nil
	}
	_, wanted := t.Batch()
	for _, shard := range wanted {
		switch p, ok := positions[shard]; {
		case !ok:
			return false, fmt.Errorf("%w: none for %s", ErrPositions, shard)
		case !p.Concrete():
			return false, fmt.Errorf("%w: %s stays unresolved", ErrPositions, shard)
		case p.check() != nil:
			return false, fmt.Errorf("%w: %s: %w", ErrPositions, shard, p.check())
		}
	}
	for _, shard := range wanted {
		t.nodes[shard].position = positions[shard]
	}
	t.unresolved = 0
	t.batch++
	t.touchAll()
	return true, nil
}

// Settled reports that the first snapshot is concrete and that shards wait until a completed checkpoint holds it. A start that was
// evaluated once is then never evaluated again, also when the process is killed before it read anything.
func (t *Topology) Settled() bool { return t.firstDone && t.unresolved == 0 && !t.open }

// Uncontained reports that what Settled says is in no snapshot yet: a checkpoint is to be asked for.
func (t *Topology) Uncontained() bool { return t.Settled() && t.contained == 0 }

// Snapshotted says that the state was encoded for a checkpoint.
func (t *Topology) Snapshotted(id sdk.CheckpointID) {
	if t.Uncontained() {
		t.contained = id
	}
}

// Durable says that a checkpoint completed. It opens the gate when that one, or one before it, holds the settled first snapshot.
func (t *Topology) Durable(id sdk.CheckpointID) {
	if t.contained != 0 && t.contained <= id {
		t.Open()
	}
}

// Open lets shards go without a checkpoint, for a job that takes none. It does nothing before the first snapshot is settled.
func (t *Topology) Open() {
	if !t.Settled() {
		return
	}
	t.open = true
	t.touchAll()
}
