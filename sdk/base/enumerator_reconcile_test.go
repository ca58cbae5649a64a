package base

import (
	"context"
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// listing is an enumerator over a desk that discovers these splits once.
func listing(t *testing.T, d *desk, state *sdk.VersionedBytes, ids ...string) *Enumerator[at] {
	t.Helper()
	e, err := NewEnumerator(d, state, EnumeratorConfig[at]{Discover: func(context.Context, Round) ([]at, error) {
		var splits []at
		for _, id := range ids {
			splits = append(splits, at{id, 0})
		}
		return splits, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A coordinator that is restored from an older state meets a reader that has finished a split since, which no completed
// checkpoint contains yet: that split is not to be assigned again, although the older state has it waiting.
func TestASplitThatARegisteredReaderHasFinishedIsNotAssignedAgain(t *testing.T) {
	t.Parallel()
	old := newDesk(2)
	e := listing(t, old, nil, "a", "b")
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	old.finish() // both wait: no reader has registered
	state, err := e.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}

	d := newDesk(2)
	e = listing(t, d, &state, "a", "b")
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	d.readers = []sdk.ReaderID{0, 1}
	for _, info := range []sdk.ReaderInfo{{ID: 0}, {ID: 1, Finished: []sdk.SplitID{"a"}}} {
		if err := e.AddReader(info); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range d.log {
		if line == "reader 0: a@0" || line == "reader 1: a@0" {
			t.Errorf("the finished split is assigned again: %q", d.log)
		}
	}
	if !slices.Contains(d.log, "reader 0: b@0") {
		t.Errorf("the other split is not assigned: %q", d.log)
	}
	// The reader dies before a checkpoint contained the end: now the split has to be read again.
	if err := e.ReturnSplits([]at{{"a", 0}}); err != nil {
		t.Fatal(err)
	}
	if last := d.log; !slices.ContainsFunc(last, func(s string) bool { return s == "reader 0: a@0" || s == "reader 1: a@0" }) {
		t.Errorf("the returned split is not assigned: %q", d.log)
	}
}

// An assignment that is larger than the engine's bound is handed over in parts. Offered as a whole for ever, the job would
// never read a record.
func TestAnAssignmentLargerThanTheBoundGoesOutInParts(t *testing.T) {
	t.Parallel()
	d := newDesk(1)
	d.room = 2
	e := listing(t, d, nil, "a", "b", "c", "d", "e")
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	d.readers = []sdk.ReaderID{0}
	if err := e.AddReader(sdk.ReaderInfo{ID: 0}); err != nil {
		t.Fatal(err)
	}
	d.finish()
	for i := 1; e.ledger.unassigned() > 0; i++ {
		if i > 5 {
			t.Fatalf("%d splits are still with the enumerator: %q", e.ledger.unassigned(), d.log)
		}
		d.room = 2
		if err := e.CheckpointComplete(sdk.CheckpointID(i)); err != nil {
			t.Fatal(err)
		}
	}
	if last := d.log[len(d.log)-1]; last != "reader 0: no more splits" {
		t.Errorf("the last word is %q", last)
	}
}
