package sink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// bubble runs f as a parallel test in a bubble of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestTwoPhaseCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, committer, 1, Restore{Whole: true})
		r.start()
		r.send(0, 1, 2)
		r.barrier(1)
		r.send(0, 3)
		synctest.Wait()
		r.loop.Commit(1)
		synctest.Wait()
		r.stop()
		r.want("journal", "new job/1 of 3 attempt 9, open, restore [], opened, write 1 2, prepare 1, prepared 1 [1:part-1] written 2, "+
			"write 3, commit part-1, committed 1, close")
		if len(r.loop.Prepared()) != 0 || r.failed() != nil {
			t.Errorf("left %v, failure %v", r.loop.Prepared(), r.failed())
		}
	})
}

// A writer that cannot prepare flushes at the barrier, and has nothing to commit.
func TestFlushForAtLeastOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, flusher, 1)
		r.send(0, 1)
		r.barrier(1)
		synctest.Wait()
		r.loop.Commit(1)
		r.want("journal", "write 1, flush, prepared 1 [] written 1, committed 1")
	})
}

// Over several inputs a barrier counts once it came on all of them; data behind it waits.
func TestBarrierIsAligned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 2)
		r.send(0, 1)
		r.channels[0].Barrier(protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
		r.send(0, 2)
		r.send(1, 11)
		synctest.Wait()
		if got := r.log(); strings.Contains(got, "write 2") || strings.Contains(got, "prepare") {
			t.Errorf("before the second barrier: %s", got)
		}
		if _, ok := r.stats.Aligning.Age(time.Now()); !ok {
			t.Error("the alignment is not measured")
		}
		r.channels[1].Barrier(protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
		synctest.Wait()
		if got := r.log(); !strings.HasSuffix(got, "prepare 1, prepared 1 [1:part-1] written 2, write 2") {
			t.Errorf("after it: %s", got)
		}
	})
}

// An abort releases what waits for barriers that never come.
func TestAbortReleasesTheAlignment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 2)
		r.channels[0].Barrier(protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
		r.send(0, 1)
		r.want("before", "")
		r.loop.Abort(1)
		r.want("after the abort", "write 1")
		r.channels[1].Barrier(protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
		r.send(1, 2)
		r.want("after the late barrier", "write 1, write 2")
	})
}

// What an aborted checkpoint prepared is not lost and not visible: it is part of the next one, and committed with that, in order.
func TestAbortedCheckpointsPartStaysForTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.send(0, 1)
		r.barrier(1)
		synctest.Wait()
		r.loop.Abort(1)
		r.send(0, 2)
		r.barrier(2)
		synctest.Wait()
		r.loop.Commit(2)
		r.want("journal", "write 1, prepare 1, prepared 1 [1:part-1] written 1, write 2, prepare 2, prepared 2 [1:part-1 2:part-2] written 2, "+
			"commit part-1, commit part-2, committed 2")
	})
}

// Nothing younger than the durable checkpoint becomes visible, and nothing is committed twice.
func TestNothingYoungerThanTheDurableCheckpointIsCommitted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		for id := sdk.CheckpointID(1); id <= 3; id++ {
			r.send(0, int64(id))
			r.barrier(id)
			synctest.Wait()
		}
		r.forget()
		r.loop.Commit(2)
		synctest.Wait()
		r.loop.Commit(1) // late, and repeated
		r.loop.Commit(2)
		r.want("up to 2", "commit part-1, commit part-2, committed 2")
		r.stop()
		if left := r.loop.Prepared(); len(left) != 1 || left[0].Checkpoint != 3 {
			t.Errorf("left %v", left)
		}
	})
}

func TestNothingPreparedMeansNothingToCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.when("prepare", func(context.Context) error { return errNothing })
		r.barrier(1)
		synctest.Wait()
		r.loop.Commit(1)
		r.want("journal", "prepare 1, prepared 1 [] written 0, committed 1")
	})
}

// A commit that fails is tried again with growing pauses, holds back what is behind it, and is never skipped.
func TestFailingCommitIsRetried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		for id := sdk.CheckpointID(1); id <= 2; id++ {
			r.barrier(id)
			synctest.Wait()
		}
		r.forget()
		began, tries := time.Now(), 0
		var at []time.Duration
		r.when("commit", func(context.Context) error {
			tries++
			at = append(at, time.Since(began))
			if tries < 4 {
				return errScripted
			}
			return nil
		})
		r.loop.Commit(2)
		<-time.After(time.Second)
		r.want("journal", "commit part-1, commit part-1, commit part-1, commit part-1, commit part-2, committed 2")
		want := []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 60 * time.Millisecond}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("committed at %v, want %v", at, want)
		}
		if r.stats.CommitRetries.Value() != 3 {
			t.Errorf("%d retries counted", r.stats.CommitRetries.Value())
		}
	})
}

// After its tries a commit fails the task, which keeps what it prepared for its successor. A fatal error is not tried again.
func TestCommitThatKeepsFailingFailsTheTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		tries int
	}{"retried": {errScripted, 4}, "fatal": {sdk.Fatal(errScripted), 1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, committer, 1)
				r.barrier(1)
				synctest.Wait()
				r.forget()
				r.when("commit", func(context.Context) error { return c.err })
				r.loop.Commit(1)
				<-r.loop.Done()
				r.want("journal", strings.Repeat("commit part-1, ", c.tries)+"failed, close")
				if !errors.Is(r.failed(), errScripted) || len(r.loop.Prepared()) != 1 {
					t.Errorf("failure %v, left %v", r.failed(), r.loop.Prepared())
				}
			})
		})
	}
}

// Cancelling does not wait for the pause between two tries.
func TestCancelEndsTheRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.barrier(1)
		synctest.Wait()
		r.when("commit", func(context.Context) error { return errScripted })
		r.loop.Commit(1)
		synctest.Wait()
		began := time.Now()
		r.stop()
		if time.Since(began) != 0 || r.failed() != nil {
			t.Errorf("took %s, failure %v", time.Since(began), r.failed())
		}
	})
}

// The whole sink is restored on one task, before any write; so it is for a new job with nothing prepared.
func TestRestoreOfTheWholeSink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, discarder, 1, Restore{Whole: true, All: [][]byte{[]byte("x"), []byte("y")}})
		r.send(0, 1)
		r.start()
		r.want("journal", "new job/1 of 3 attempt 9, open, restore [x y], opened, write 1")
	})
}

// A task that is restarted alone commits what its checkpoint contains, and discards what never became part of one.
func TestRestoreOfOneTask(t *testing.T) {
	t.Parallel()
	restore := Restore{
		Commit:  []protocol.Prepared{{Checkpoint: 4, Data: []byte("four")}, {Checkpoint: 5, Data: []byte("five")}},
		Discard: []protocol.Prepared{{Checkpoint: 6, Data: []byte("six")}},
	}
	for kind, want := range map[writerKind]string{
		discarder: "open, commit four, commit five, discard six, opened",
		committer: "open, commit four, commit five, opened",
		flusher:   "open, opened",
	} {
		t.Run(want, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, kind, 1, restore)
				r.start()
				r.want("journal", "new job/1 of 3 attempt 9, "+want)
			})
		})
	}
}

// Every call, failing and panicking: the task fails once with that error, and the writer is closed once.
func TestFailureInAnyCallFailsTheTaskOnce(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"NewWriter", "open", "restore", "write", "prepare", "commit", "flush"} {
		for how, fail := range map[string]func(context.Context) error{
			"error": func(context.Context) error { return errScripted },
			"panic": func(context.Context) error { panic(errScripted) },
		} {
			t.Run(call+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					kind := committer
					if call == "flush" {
						kind = flusher
					}
					r := newRig(t, kind, 1, Restore{Whole: true})
					r.when(call, fail)
					r.send(0, 1)
					r.barrier(1)
					r.start()
					r.loop.Commit(1)
					<-r.loop.Done()
					got := r.log()
					_, panicked := errors.AsType[*connector.PanicError](r.failed())
					if !errors.Is(r.failed(), errScripted) || panicked != (how == "panic") || strings.Count(got, "failed") != 1 {
						t.Errorf("failure %v, journal %s", r.failed(), got)
					}
					closes := 1
					if call == "NewWriter" {
						closes = 0 // there is nothing to close
					}
					if strings.Count(got, "close") != closes || strings.Contains(got, "committed") {
						t.Errorf("journal %s", got)
					}
					if (call == "prepare" || call == "write" || call == "flush") && strings.Contains(got, "prepared") {
						t.Errorf("acknowledged all the same: %s", got)
					}
				})
			})
		}
	}
}

func TestFailingCloseChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.when("close", func(context.Context) error { panic(errScripted) })
		r.stop()
		r.want("journal", "close")
	})
}

// A write that hangs is ended through its context, and that is no failure. Close gets a context of its own.
func TestCancelEndsAStuckWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.when("write", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		var left time.Duration
		r.when("close", func(ctx context.Context) error {
			at, _ := ctx.Deadline()
			left = time.Until(at)
			return ctx.Err()
		})
		r.send(0, 1)
		synctest.Wait()
		if _, ok := r.stats.Call.Age(time.Now()); !ok {
			t.Error("the running call is not measured")
		}
		r.stop()
		r.want("journal", "write 1, close")
		if left != 5*time.Second || r.failed() != nil {
			t.Errorf("close has %s, failure %v", left, r.failed())
		}
	})
}

// A fenced attempt says nothing any more, whatever its writer still does, and its inputs are closed.
func TestFencedTaskReportsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		back := make(chan struct{})
		r.when("prepare", func(context.Context) error { <-back; return nil })
		r.barrier(1)
		synctest.Wait()
		r.loop.Fence()
		r.loop.Commit(1)
		r.loop.Terminal()
		close(back)
		<-r.loop.Done()
		r.want("journal", "prepare 1, close")
		if !r.channels[0].Closed() {
			t.Error("the input is open")
		}
	})
}

// A fence alone makes a waiting loop leave.
func TestFenceWakesTheLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		r.loop.Fence()
		<-r.loop.Done()
		r.want("journal", "close")
	})
}

func TestCancelWhileOpening(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, committer, 1, Restore{Whole: true})
		r.when("open", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		r.start()
		r.stop()
		r.want("journal", "new job/1 of 3 attempt 9, open, close")
	})
}

func TestCounters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, committer, 1)
		for range 130 { // more than one interval of measuring
			r.send(0, 1, 2)
			synctest.Wait()
		}
		r.barrier(1)
		synctest.Wait()
		if s := r.stats; s.Records.Value() != 260 || s.Batches.Value() != 130 || s.Pending.Value() != 1 {
			t.Errorf("%d records, %d batches, %d pending", s.Records.Value(), s.Batches.Value(), s.Pending.Value())
		}
		r.loop.Commit(1)
		if synctest.Wait(); r.stats.Pending.Value() != 0 {
			t.Errorf("%d pending after the commit", r.stats.Pending.Value())
		}
	})
}
