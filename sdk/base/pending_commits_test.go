package base

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/sdk"
)

// Ended after snapshot 1, a split is no part of it, so the completion of 1 must not let its end go (FLINK-37416 and what
// its repair still missed).
func TestEndOfASplitIsKeptUntilACheckpointContainsIt(t *testing.T) {
	t.Parallel()
	var p pendingCommits[at]
	p.snapshot(1, []at{{"a", 5}, {"b", 5}})
	p.finish(at{"b", 9})
	if _, splits, ok := p.complete(1); !ok || !slices.Equal(splits, []at{{"a", 5}, {"b", 5}}) {
		t.Errorf("complete 1: %v %t", splits, ok)
	}
	p.snapshot(2, []at{{"a", 6}})
	p.abort(2)
	p.snapshot(3, []at{{"a", 7}})
	if id, splits, ok := p.complete(3); !ok || id != 3 || !slices.Equal(splits, []at{{"a", 7}, {"b", 9}}) {
		t.Errorf("complete 3: %d %v %t, want the end of b in it although 2 was aborted", id, splits, ok)
	}
	p.snapshot(4, []at{{"a", 8}})
	if _, splits, _ := p.complete(4); !slices.Equal(splits, []at{{"a", 8}}) {
		t.Errorf("complete 4: %v, want no b", splits)
	}
}

func TestCompletionCoversEarlierCheckpoints(t *testing.T) {
	t.Parallel()
	var p pendingCommits[at]
	p.snapshot(3, []at{{"a", 3}})
	p.snapshot(5, []at{{"a", 5}})
	p.snapshot(8, []at{{"a", 8}})
	if id, splits, ok := p.complete(6); !ok || id != 5 || splits[0].Next != 5 {
		t.Errorf("complete 6: %d %v %t, want what 5 had", id, splits, ok)
	}
	for _, id := range []sdk.CheckpointID{6, 5, 3, 1} {
		if _, _, ok := p.complete(id); ok {
			t.Errorf("complete %d was taken a second time or too late", id)
		}
	}
	if _, splits, ok := p.complete(9); !ok || splits[0].Next != 8 {
		t.Errorf("complete 9: %v %t, want what 8 had", splits, ok)
	}
}

// Checkpoints that never complete must not gather without end.
func TestPendingCheckpointsAreBounded(t *testing.T) {
	t.Parallel()
	var p pendingCommits[at]
	for i := range 1000 {
		p.snapshot(sdk.CheckpointID(i), []at{{"a", int64(i)}})
	}
	if len(p.snapshots) != maxPendingCheckpoints {
		t.Errorf("%d snapshots kept, want %d", len(p.snapshots), maxPendingCheckpoints)
	}
	if id, _, ok := p.complete(999); !ok || id != 999 {
		t.Error("the newest was dropped")
	}
	for i := range maxFinishedSplits + 10 {
		p.finish(at{fmt.Sprint(i), 0})
	}
	if len(p.finished) > maxFinishedSplits {
		t.Errorf("%d finished splits kept", len(p.finished))
	}
}

func TestOnCheckpointIsToldWhatTheSnapshotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{size: 10, end: map[string]int64{"b": 10}, gate: make(chan struct{}, 2)}
		var told []string
		cfg := c.config()
		cfg.OnCheckpoint = func(id sdk.CheckpointID, splits []at) error {
			told = append(told, fmt.Sprint(id, splits))
			return nil
		}
		l := newLoop(t, cfg)
		l.add(at{"a", 0}, at{"b", 0})
		synctest.Wait()
		snapshot := func(id sdk.CheckpointID) {
			splits, err := l.r.Snapshot(id)
			if err != nil {
				t.Fatal(err)
			}
			clear(splits) // the caller owns the slice
		}
		snapshot(1)
		c.gate <- struct{}{}
		c.gate <- struct{}{}
		l.settle()
		snapshot(2)
		for _, id := range []sdk.CheckpointID{2, 1, 2} {
			if err := l.r.CheckpointComplete(id); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"2 [{a 10} {b 10}]"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		l.close()
	})
}
