package coordinator

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/sdk"
)

// everywhere counts where a cut has a split: enumerator, tracker above that reader's watermark, reader, finished.
func everywhere(cut *Restored, id string) []string {
	var places []string
	if slices.Contains(strings.Fields(string(cut.Coordinator.Enumerator.Data)), id) {
		places = append(places, "enumerator")
	}
	for _, a := range cut.Coordinator.Tracker {
		if !coveredByCut(cut.Readers, a) && slices.Contains(strings.Fields(namesOf(a.Splits)), id) {
			places = append(places, "tracker")
		}
	}
	for _, r := range cut.Readers {
		if slices.Contains(strings.Fields(namesOf(r.Splits)), id) {
			places = append(places, "reader")
		}
		if slices.Contains(strings.Fields(namesOf(r.Finished)), id) {
			places = append(places, "finished")
		}
	}
	return places
}

// exactlyIn checks invariant 13 for one split.
func exactlyIn(t *testing.T, cut *Restored, id, place string) {
	t.Helper()
	if got := everywhere(cut, id); !slices.Equal(got, []string{place}) {
		t.Errorf("split %s is in %v, want it in the %s only", id, got, place)
	}
}

func TestCheckpointReachesEverybody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(0, "a")
		r.serve()
		cut := r.checkpoint(1)
		r.want("journal", "snapshot 1, cut 1, complete 1")
		exactlyIn(t, cut, "a", "reader")
		if got := r.readers[1].offered(); got != "register#1 barrier#2 checkpoint_complete#3" {
			t.Errorf("offered %s", got)
		}
		r.loop.Abort(2)
		r.want("journal", "snapshot 1, cut 1, complete 1, aborted 2")
		if got := r.readers[1].offered(); got != "checkpoint_aborted#4" {
			t.Errorf("offered %s", got)
		}
	})
}

// FLINK-21996, FLINK-28606: the dispatch gate. What the enumerator assigns while it is cut goes out behind the barrier, to
// every reader: also to one whose barrier is still to be offered.
func TestAssignmentDuringTheCutWaitsForTheBarrier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.script.unassigned = []string{"a", "b"}
		r.script.when("Snapshot", func() error {
			r.script.unassigned = nil
			for i, s := range []string{"a", "b"} {
				if err := r.script.ctx.Assign(sdk.ReaderID(i), typed(s)); err != nil {
					t.Error(err)
				}
				r.script.ctx.SendEvent(sdk.ReaderID(i), sdk.Event{Kind: "e"})
			}
			return nil
		})
		r.loop.Cut(1, protocol.Periodic)
		for i, rd := range r.readers {
			// The barrier was made after the assignment and passes it.
			if got := rd.offered(); got != "register#1 barrier#4 add_splits#2 source_event#3" {
				t.Errorf("reader %d was offered %s", i, got)
			}
		}
		r.serve()
		cut := r.cut(1)
		exactlyIn(t, cut, "a", "tracker")
		exactlyIn(t, cut, "b", "tracker")
	})
}

// Interleaving 1 of the design: an old epoch's command is in a mailbox when a new coordinator asks for registration. What the
// reader applied before its answer is in it; so the new coordinator does not assign it again.
func TestOldEpochsSplitIsInTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.script.unassigned = []string{"a", "b"}
		cut := r.checkpoint(1) // both unassigned
		r.do(func() { r.script.unassigned = []string{"b"} })
		r.assign(0, "a") // admitted, not applied
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("journal", "close, new [a b], start, reader 0 [a] [], reader 1 [] [], reconciled 6")
		r.do(func() {
			if got := strings.Join(r.script.unassigned, " "); got != "b" {
				t.Errorf("unassigned are %s", got)
			}
		})
	})
}

// Interleaving 2: a retry that crosses the barrier. Dispatched before the cut, refused, admitted behind the barrier: it is in the
// tracker's snapshot and above the reader's watermark, and a restore returns it.
func TestRetryThatCrossesTheBarrierIsReturnedByARestore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(0, "a")
		r.serve()
		r.readers[0].refuse(protocol.AddSplits)
		r.assign(0, "b")
		r.loop.Cut(1, protocol.Periodic) // the barrier passes what waits
		synctest.Wait()
		r.readers[0].script(nil)
		<-time.After(time.Second)
		r.serve()
		if got := r.readers[0].holds(); got != "a b" {
			t.Errorf("the reader holds %s", got)
		}
		cut := r.cut(1)
		exactlyIn(t, cut, "a", "reader")
		exactlyIn(t, cut, "b", "tracker")
		if w := cut.Readers[0].Metadata.Watermarks[0]; len(w.Gaps) != 1 || w.Gaps[0] != 3 || w.Applied != 4 {
			t.Errorf("the watermark is %+v", w)
		}
		// Only the coordinator restarts: the reader still has b, so it does not go back.
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("the coordinator alone", "close, new [], start, reader 0 [a b] [], reader 1 [] [], reconciled 6")
		// The whole job restarts from the cut: the reader does not have b, so it goes back.
		for i, rd := range r.readers {
			rd.begin(&cut.Readers[i])
		}
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("restored", "close, new [], start, returned b, reader 0 [a] [], reader 1 [] [], reconciled 7")
	})
}

// Interleaving 3: a new coordinator, then a dead reader. What a reader holds beyond the restored checkpoint is adopted, so that
// its own failover to that checkpoint gives it back; without, it would be lost.
func TestHeldBeyondTheCheckpointIsAdopted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.script.unassigned = []string{"a", "b", "c"}
		cut := r.checkpoint(1)
		r.do(func() { r.script.unassigned = nil })
		r.assign(0, "a", "b")
		r.assign(1, "c")
		r.serve()
		r.readers[0].finish("b")
		r.failover(cut)
		r.serve()
		r.do(func() {
			if len(r.script.unassigned) != 0 {
				t.Errorf("unassigned are %v", r.script.unassigned)
			}
		})
		r.forget()
		r.readers[0].restart(&cut.Readers[0])
		r.want("the reader died before the next checkpoint", "returned a b, reader 0 [] []")
		r.checkpoint(2)
		r.forget()
		r.readers[1].restart(&r.cut(2).Readers[1])
		r.want("c is in checkpoint 2", "reader 1 [c] []")
	})
}

// Interleaving 4: a split ended after the checkpoint that the coordinator restores. The restored state still has it; the
// reader's evidence takes it out, and it is told when a checkpoint contains it.
func TestFinishedAfterTheRestoredCheckpointIsNotAssignedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.script.unassigned = []string{"a"}
		cut := r.checkpoint(1)
		r.do(func() { r.script.unassigned = nil })
		r.assign(0, "a")
		r.serve()
		r.readers[0].finish("a")
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("restored", "close, new [a], start, reader 0 [] [a], reconciled 6")
		r.do(func() {
			if len(r.script.unassigned) != 0 {
				t.Errorf("unassigned are %v", r.script.unassigned)
			}
		})
		r.forget()
		exactlyIn(t, r.checkpoint(2), "a", "finished")
		r.want("the next checkpoint", "snapshot 2, cut 2, finished a, complete 2")
	})
}

// Interleaving 5: a reader that dies or registers anew while a checkpoint is under way. Nothing of that checkpoint counts as
// included once it is aborted.
func TestReaderThatDiesDuringACheckpointIncludesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(0, "a")
		r.serve()
		old := r.readers[0].attempt
		r.loop.Cut(1, protocol.Periodic)
		r.serve()
		marks := r.readers[0].states[1].Metadata.Watermarks
		r.loop.Included(1, 0, old, marks)
		r.loop.Abort(1)
		r.readers[0].restart(nil) // from before any checkpoint
		r.do(func() {
			if got := strings.Join(r.script.unassigned, " "); got != "a" {
				t.Errorf("unassigned are %q", got)
			}
			r.script.unassigned = nil
		})
		r.assign(0, "a")
		r.loop.Included(1, 0, old, marks) // late news of the old attempt
		r.loop.Complete(1, nil)           // and a late completion
		r.forget()
		r.readers[0].restart(nil)
		r.want("a is still in no checkpoint", "returned a, reader 0 [] []")
		r.readers[1].dead = true
		r.loop.ReaderDown(1, r.readers[1].attempt)
		r.loop.Cut(2, protocol.Periodic)
		r.want("no cut without every reader", "returned a, reader 0 [] [], declined 2")
	})
}

// Evidence of the restored checkpoint is told to the new enumerator. A reader that had not heard of its completion still has
// that evidence: it is durable, and must not come back as unread when that reader fails.
func TestEvidenceOfTheRestoredCheckpointIsNotAdopted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.assign(0, "a", "b")
		r.serve()
		r.readers[0].finish("a")
		r.loop.Cut(1, protocol.Periodic)
		r.serve()
		cut := r.cut(1) // it becomes durable, and the coordinator dies before it can say so
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("restored", "close, new [], start, finished a, reader 0 [b] [a], reconciled 6")
		r.forget()
		r.readers[0].restart(&cut.Readers[0])
		r.want("the reader fails over to the same checkpoint", "reader 0 [b] []")
	})
}

// FLINK-40469, FLINK-39645: the window in which restored splits are held by the enumerator and not yet assigned again is itself
// checkpointable, and so is the one in which they are assigned and not yet applied.
func TestWindowAfterARestoreCanBeCheckpointed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(0, "a")
		r.loop.Cut(1, protocol.Periodic)
		synctest.Wait()
		r.readers[0].box = nil // the mailbox is lost with the process
		r.readers[0].states[1] = protocol.ReaderState{Metadata: protocol.Metadata{Lineage: []protocol.Attempt{r.readers[0].attempt}}}
		r.readers[1].apply()
		cut := r.cut(1)
		exactlyIn(t, cut, "a", "tracker")
		for i, rd := range r.readers {
			rd.begin(&cut.Readers[i])
		}
		r.failover(cut)
		r.serve()
		held := r.checkpoint(2) // returned, not assigned
		exactlyIn(t, held, "a", "enumerator")
		r.do(func() { r.script.unassigned = nil })
		r.readers[1].refuse(protocol.AddSplits)
		r.assign(1, "a")
		sent := r.checkpoint(3) // assigned, not admitted
		exactlyIn(t, sent, "a", "tracker")
		for i, rd := range r.readers {
			rd.begin(&sent.Readers[i])
		}
		r.forget()
		r.failover(sent)
		r.serve()
		r.want("from the second window", "close, new [], start, returned a, reader 0 [] [], reader 1 [] [], reconciled 7")
	})
}

// Rescale: the cut's readers are not today's. Assignments are judged by the watermark of the cut, and by who holds the split now.
func TestRestoreWithAnotherParallelism(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 3, nil)
		r.assign(0, "a")
		r.assign(2, "b")
		r.serve()
		r.readers[2].refuse(protocol.AddSplits)
		r.assign(2, "c")
		cut := r.checkpoint(1)
		exactlyIn(t, cut, "c", "tracker")
		all := protocol.ReaderState{Splits: slices.Concat(cut.Readers[0].Splits, cut.Readers[2].Splits)}
		r.readers = r.readers[:1]
		r.cfg.Parallelism = 1
		r.readers[0].begin(&all)
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("one reader has it all", "close, new [], start, returned c, reader 0 [a b] [], reconciled 6")
	})
}

// Beam 31313, iceberg 10208: a split that a reader restored is not in the enumerator's hands as well.
func TestRestoredSplitIsNotEnumeratedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *Config) {
			c.Restored = &Restored{Coordinator: protocol.CoordinatorState{Enumerator: sdk.VersionedBytes{Version: 1, Data: []byte("a b")}, Generation: 7}}
		})
		r.readers[0].begin(&protocol.ReaderState{Splits: untyped("a")})
		r.start()
		r.serve()
		r.do(func() {
			if got := strings.Join(r.script.unassigned, " "); got != "b" {
				t.Errorf("unassigned are %s", got)
			}
			if err := r.script.ctx.NoMoreSplits(0); err != nil || r.loop.generation != 8 {
				t.Errorf("generation is %d, %v", r.loop.generation, err)
			}
		})
	})
}

// A completion or an abort that comes before the epoch is reconciled goes to readers, which may wait for it, and not to the
// enumerator, which has not started.
func TestNoticesBeforeReconciliation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 2, nil)
		r.readers[0].begin(nil)
		r.start()
		r.loop.Complete(1, untyped("a"))
		r.loop.Abort(2)
		r.want("journal", "new []")
		if got := r.readers[0].offered(); got != "register#1 checkpoint_complete#2 checkpoint_aborted#3" {
			t.Errorf("offered %s", got)
		}
	})
}

// A registration that carries a higher no-more-splits generation raises the coordinator's.
// A reader's request waits over a failover of the coordinator. It is served when the enumerator knows what all readers hold: an
// enumerator restored from an older state would give away what a reader has that registers in the same moment.
func TestRequestIsServedWhenEveryReaderIsKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.assign(1, "a")
		r.serve()
		r.loop.Fence()
		<-r.loop.Done()
		r.cfg.Epoch++
		r.prepare()
		script := r.script
		script.unassigned = []string{"a"} // the new epoch starts from before the assignment
		script.when("HandleSplitRequest", func() error {
			for _, id := range script.unassigned {
				r.note("gives %s away", id)
			}
			return nil
		})
		r.start()
		r.port.RequestSplit(0, r.readers[0].attempt)
		r.forget()
		r.serve()
		r.want("the new epoch", "start, reader 0 [] [], reader 1 [a] [], request 0, reconciled 6")
	})
}

func TestGenerationNeverGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		r.readers[0].begin(nil)
		r.start()
		r.port.Registered(0, r.readers[0].attempt, firstEpoch, reader.Registration{Generation: 12})
		r.do(func() {
			if r.loop.generation != 12 {
				t.Errorf("generation is %d", r.loop.generation)
			}
		})
	})
}

// FLINK-40710: a reader that fails inside that window registers anew and empty. What it was sent from the restored state goes
// back once more.
func TestReaderThatFailsInsideTheWindowLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 2, nil)
		r.script.unassigned = []string{"a"}
		cut := r.checkpoint(1)
		r.failover(cut)
		r.serve()
		r.do(func() { r.script.unassigned = nil })
		r.readers[1].refuse(protocol.AddSplits)
		r.assign(1, "a")
		r.forget()
		r.readers[1].restart(&cut.Readers[1])
		r.want("journal", "returned a, reader 1 [] []")
	})
}

// A split that was assigned and ended before the barrier is in the cut's tracker, below the watermark, and in its evidence. A
// restore of everything tells its end, and does not give it back although no reader holds it.
func TestFinishedInTheCutIsNotReturned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, nil)
		r.assign(0, "a")
		r.serve()
		r.readers[0].finish("a")
		cut := r.checkpoint(1)
		exactlyIn(t, cut, "a", "finished")
		r.readers[0].begin(&cut.Readers[0])
		r.forget()
		r.failover(cut)
		r.serve()
		r.want("restored", "close, new [], start, finished a, reader 0 [] [], reconciled 6")
	})
}

// A cut says when splits are on their way to readers: with the enumerator, which had said before that no more follow, or sent
// and not admitted. Readers that have ended are not the end of the job then.
func TestACutSaysThatSplitsAreOnTheirWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 1, func(*Config) {})
		if r.checkpoint(1).Coordinator.Owing {
			t.Error("owing, before anything was said")
		}
		more := func() {
			if err := r.script.ctx.NoMoreSplits(0); err != nil {
				t.Error(err)
			}
		}
		r.do(more)
		r.serve()
		if r.checkpoint(2).Coordinator.Owing {
			t.Error("owing, after no more splits was said")
		}
		r.do(func() { r.loop.giveBack(untyped("a")) })
		if !r.checkpoint(3).Coordinator.Owing {
			t.Error("a split was given back, and the cut does not say so")
		}
		r.do(more)
		r.serve()
		if r.checkpoint(4).Coordinator.Owing {
			t.Error("owing, after no more splits was said again")
		}
	})
}
