package kinesis

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// E2, E21, E36: a stream whose history is closed shards, some of them empty. The emulator gives them an ending number that is smaller than those of all records.
func TestClosedShardsAreReadToTheirEndOneGenerationAfterTheOther(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, nil, func(w *world) {
		w.put(0, 20)
		lower, upper, err := w.on.Split(w.stream(), firstShard)
		w.must(err)
		child, err := w.on.Merge(w.stream(), lower, upper) // which leaves two without a record
		w.must(err)
		w.put(20, 20)
		_, _, err = w.on.Split(w.stream(), child)
		w.must(err)
		w.put(40, 20)
		w.start()
		w.arrive(60)
		w.run(5 * time.Second)
		w.checkpoint()
		w.each(w.committed(), 0, 60)
		if held := w.held(); len(held) != 2 || slices.Contains(held, child) {
			w.t.Errorf("%v are held, want the last generation", held)
		}
	})
}

// E26, E27: resharding while a job reads, without a restart.
func TestChildrenFollowTheirParentsWhileTheJobReads(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, nil, func(w *world) {
		w.put(0, 30)
		w.start()
		w.arrive(30)
		lower, upper, err := w.on.Split(w.stream(), firstShard)
		w.must(err)
		w.put(30, 30)
		w.arrive(60)
		_, err = w.on.Merge(w.stream(), lower, upper)
		w.must(err)
		w.put(60, 30)
		w.arrive(90)
		w.run(5 * time.Second)
		w.checkpoint()
		w.each(w.committed(), 0, 90)
	})
}

// E34: what appears after the first look is read from its beginning, whatever the start was.
func TestNewShardsOfAJobThatBeganAtTheLatestRecordAreReadFromTheirBeginning(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(s *Source) { s.Start, s.LatestBy = Latest(), ByScan }, func(w *world) {
		w.put(0, 20)
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 2 })
		w.kill()
		w.must(w.on.Reshard(w.stream(), 4))
		w.put(20, 40)
		w.start()
		w.arrive(40)
		w.run(5 * time.Second)
		w.each(w.all(), 20, 40)
	})
}

// E35: the batch is resolved and no checkpoint contains it yet, while its shards are split.
func TestNothingIsAssignedBeforeACheckpointHoldsTheLatestPositionsAlsoWhenTheStreamIsResharded(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(s *Source) { s.Start, s.LatestBy = Latest(), ByScan }, func(w *world) {
		w.put(0, 20)
		w.byHand = true
		w.start()
		w.until(time.Minute, func() bool { return w.wanted })
		w.must(w.on.Reshard(w.stream(), 4))
		w.put(20, 20)
		w.run(30 * time.Second)
		if held := w.held(); len(held) > 0 {
			w.t.Fatalf("%v were given out before a checkpoint contained their positions", held)
		}
		w.checkpoint()
		w.byHand = false
		w.arrive(20)
		w.run(5 * time.Second)
		w.each(w.all(), 20, 20)
	})
}

// known is what a stream holds, as a first job delivered it: what later ones are to find of it is computed from that.
func (w *world) known(n int) []sdk.Record {
	w.t.Helper()
	w.start()
	w.arrive(n)
	all := w.all()
	w.kill()
	w.last = nil
	return all
}

// finds starts a job anew, which is to deliver exactly the records that want says.
func (w *world) finds(what string, of []sdk.Record, want func(r *sdk.Record) bool) {
	w.t.Helper()
	var wanted []string
	for i := range of {
		if want(&of[i]) {
			wanted = append(wanted, string(of[i].Value))
		}
	}
	w.start()
	w.arrive(len(wanted))
	w.run(5 * time.Second)
	var got []string
	for _, r := range w.all() {
		got = append(got, string(r.Value))
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		w.t.Errorf("%s: records %v, want %v", what, got, wanted)
	}
}

// E6, E48: the kinds of iterators. That behind a record is what a restart takes; latest has tests of its own.
func TestAStartIsAtThatRecordAtThatTimeOrAtTheOldestAndARestartBehindTheLastOne(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, nil, func(w *world) {
		w.put(0, 10)
		w.run(time.Second)
		w.put(10, 10)
		all := w.known(20)
		again := func(start Position) {
			w.kill()
			w.last, w.source.Start = nil, start
		}
		again(Sequences(map[string]string{firstShard: all[12].Sequence}))
		w.finds("at a record", all[12:], func(*sdk.Record) bool { return true })
		again(Timestamp(all[10].Time))
		w.finds("at a time", all, func(r *sdk.Record) bool { return !r.Time.Before(all[10].Time) })
		again(Timestamp(all[0].Time.Add(-48 * time.Hour)))
		w.finds("at a time before all", all, func(*sdk.Record) bool { return true })
		again(TrimHorizon())
		w.finds("at the oldest", all, func(*sdk.Record) bool { return true })
		w.checkpoint()
		w.kill()
		w.put(20, 5)
		w.start()
		w.arrive(25)
		w.run(5 * time.Second)
		w.each(w.all(), 0, 25)
	})
}

// E30: a parent that ended before the start is outside, and holds nobody up.
func TestAParentOutsideOfTheFirstSnapshotDoesNotHoldUpItsChildren(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, nil, func(w *world) {
		w.put(0, 20)
		w.must(w.on.Reshard(w.stream(), 2))
		w.run(time.Second)
		w.put(20, 20)
		all := w.known(40)
		var began time.Time
		for _, r := range all {
			if r.Split != firstShard && (began.IsZero() || r.Time.Before(began)) {
				began = r.Time
			}
		}
		w.source.Start = Timestamp(began)
		w.finds("from the children on", all, func(r *sdk.Record) bool { return r.Split != firstShard })
		if held := w.held(); len(held) != 2 {
			w.t.Errorf("%v are held", held)
		}
	})
}

func TestABoundedJobEndsBeforeTheFirstRecordThatIsTooYoung(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, nil, func(w *world) {
		w.put(0, 20)
		w.run(time.Second)
		w.put(20, 20)
		all := w.known(40)
		stop := all[0].Time
		for _, r := range all { // the first one of the second lot
			if string(r.Value) == "20" {
				stop = r.Time
			}
		}
		w.source.Stop = Timestamp(stop)
		w.finds("before the stop", all, func(r *sdk.Record) bool { return r.Time.Before(stop) })
		if !w.until(time.Minute, func() bool { return w.tasks[0].ended }) {
			w.t.Errorf("the job did not end; the reader holds %v, error %v", w.held(), w.err)
		}
	})
}
