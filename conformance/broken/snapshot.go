package broken

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Snapshot implements [sdk.Reader].
func (r *reader) Snapshot(id sdk.CheckpointID) ([]Split, error) {
	if r.has(AsksInSnapshot) && r.system.hangs() && r.had {
		_ = wait(r.life, 2*time.Second)
	}
	if r.has(SharesSnapshot) {
		return r.at, nil
	}
	splits := append(slices.Clone(r.at), r.late...)
	for i, o := range r.splits {
		switch {
		case r.has(LagsBehind):
			splits[i].Next = max(0, splits[i].Next-1)
		case r.has(StoresFetched):
			splits[i].Next = int(o.fetched.Load())
		}
	}
	if r.has(SnapshotsRead) {
		splits = slices.DeleteFunc(splits, func(s Split) bool { return s.Next == 0 })
	}
	r.remember(id, splits)
	return splits, nil
}

func (r *reader) remember(id sdk.CheckpointID, splits []Split) {
	if !r.has(KeepsSnapshots) && !r.has(WantsKnownIDs) {
		return
	}
	positions := map[sdk.SplitID]int{}
	for _, s := range splits {
		positions[s.SplitID()] = s.Next
	}
	r.known[id] = positions
	if r.has(WantsKnownIDs) {
		delete(r.known, id-100)
	}
}

// CheckpointComplete implements [sdk.CheckpointListener].
func (r *reader) CheckpointComplete(id sdk.CheckpointID) error {
	if r.has(WantsKnownIDs) && r.known[id] == nil {
		return fmt.Errorf("checkpoint %d is not known", id)
	}
	maps.DeleteFunc(r.known, func(k sdk.CheckpointID, _ map[sdk.SplitID]int) bool { return k < id })
	return nil
}

// CheckpointAborted implements [sdk.CheckpointListener].
func (r *reader) CheckpointAborted(sdk.CheckpointID) error { return nil }
