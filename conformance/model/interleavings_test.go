package model_test

import (
	"testing"
	"testing/synctest"

	"github.com/penstock-dev/penstock/conformance/model"
)

// The five interleavings of docs/design.md, section 6, with real coordinators, mailboxes and readers. For each the rule that it needs
// is named; package conformance/mutation switches rules off.
func TestTheFiveInterleavings(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(t *testing.T, w *model.World){
		// The fence at apply, and an answer that is taken behind it.
		"an old epoch's command already in a mailbox": func(_ *testing.T, w *model.World) {
			w.Hold(0, true)
			w.Assign(0, 1) // is admitted, and waits in the mailbox
			w.FailCoordinator()
			w.Assign(1, 3) // waits until reader 0 has registered
			w.Hold(0, false)
			w.Assign(1, 3)
		},
		// Gaps in the watermark.
		"a retry that crosses the barrier": func(t *testing.T, w *model.World) {
			w.Deliver(0, model.Refused)
			w.Assign(0, 1)
			w.Cut() // the barrier passes the assignment
			w.Deliver(0, model.Well)
			w.Pass()
			complete(t, w)
			w.FailAll(2)
			w.Assign(1, 3)
		},
		// What a reader holds beyond the restored checkpoint is adopted.
		"a new coordinator, then a dead reader": func(t *testing.T, w *model.World) {
			w.Cut()
			complete(t, w)
			w.Assign(0, 2)
			w.End(0, 0)
			w.FailCoordinator()
			w.FailReader(0)
			w.Assign(1, 3)
		},
		// The evidence of readers corrects the enumerator's restored state.
		"finished after the checkpoint that the coordinator restores": func(t *testing.T, w *model.World) {
			w.Cut()
			complete(t, w)
			w.Assign(0, 1)
			w.End(0, 0)
			w.FailCoordinator()
			w.Assign(1, 3)
			w.Cut()
			complete(t, w)
			w.FailCoordinator()
			w.Assign(1, 3)
		},
		// An aborted checkpoint includes nothing.
		"a reader that dies while a checkpoint is under way": func(t *testing.T, w *model.World) {
			w.Assign(0, 1)
			w.Hold(1, true)
			w.Cut() // reader 0 has acknowledged, reader 1 has not
			w.Hold(0, true)
			w.FailReader(0)
			w.Hold(1, false)
			w.Assign(0, 1)
			w.Cut()
			complete(t, w)
			w.FailReader(0)
		},
		// The dispatch gate is closed between the snapshot and the barrier.
		"an assignment between the snapshot and the barrier": func(t *testing.T, w *model.World) {
			w.AssignInTheCut(0, 1)
			w.Cut()
			complete(t, w)
			w.FailAll(3)
			w.Assign(2, 3)
		},
		// A request is served when every reader is known.
		"a request that waits for a registration": func(_ *testing.T, w *model.World) {
			w.Assign(1, 1)
			w.Hold(1, true)
			w.FailCoordinator()
			w.Assign(0, 3)
			w.Hold(1, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := model.NewWorld(splits(3), 2, 10, true)
				defer w.Stop()
				script(t, w)
				tell(t, w.Settle())
			})
		})
	}
}

func complete(t *testing.T, w *model.World) {
	t.Helper()
	if !w.Complete() {
		t.Fatal("the checkpoint cannot complete")
	}
	w.Announce()
}

// A checkpoint of which a part is missing does not complete.
func TestACheckpointWaitsForAllItsParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := model.NewWorld(splits(3), 2, 10, true)
		defer w.Stop()
		w.Hold(1, true)
		w.Cut()
		if w.Complete() {
			t.Error("it completed without reader 1")
		}
		w.Hold(1, false)
		complete(t, w)
	})
}
