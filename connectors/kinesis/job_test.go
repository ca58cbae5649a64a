package kinesis

import (
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestRecordsOfAllShardsAreReadOnceAndInOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, 4, nil, func(w *world) {
		w.put(0, 200)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 200 })
		w.each(w.all(), 0, 200)
		r := w.all()[0]
		if r.Topic != w.stream() || r.Split == "" || r.Sequence == "" || r.Partition != -1 || r.Offset != 0 || r.Time.IsZero() {
			w.t.Errorf("a record is at %+v", r)
		}
	})
}

// E26, E27, E28: 2 -> 4 -> 2 -> 8, with the process killed again and again.
func TestReshardingKeepsEachRecordOnceAndTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, nil, func(w *world) {
		w.readers = 2
		written := 0
		write := func(n int) {
			w.put(written, n)
			written += n
		}
		write(50)
		w.start()
		counts := []int{4, 2, 8}
		if w.wall { // which takes no more than twice as many
			counts = []int{4, 2, 4}
		}
		for _, shards := range counts {
			w.run(1700 * time.Millisecond)
			write(40)
			w.must(w.on.Reshard(w.stream(), shards))
			write(40)
			w.run(900 * time.Millisecond)
			w.kill()
			w.start()
			w.run(2100 * time.Millisecond)
			w.checkpoint()
			write(20)
			w.kill()
			w.start()
		}
		w.until(5*time.Minute, func() bool { return len(w.all()) >= written })
		w.checkpoint()
		w.each(w.committed(), 0, written)
	})
}

// E44: latest, no records, killed before the first checkpoint by interval, five records, started again.
func TestLatestIsDurableBeforeAnythingIsReadSoThatRecordsWrittenWhileItIsDownAreDelivered(t *testing.T) {
	t.Parallel()
	for _, by := range []LatestBy{ByClock, ByScan} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			onBoth(t, 2, func(s *Source) { s.Start, s.LatestBy = Latest(), by }, func(w *world) {
				if !w.wall {
					w.put(0, 20)
					time.Sleep(3 * time.Second) //nolint:forbidigo // the clock of the bubble
				} else if by == ByScan { // a clock would find what is younger than its margin
					w.put(0, 20)
				}
				w.start()
				w.until(time.Minute, func() bool { return len(w.held()) == 2 })
				w.run(10 * time.Second)
				w.kill()
				w.put(20, 5)
				w.start()
				w.until(time.Minute, func() bool { return len(w.all()) >= 5 })
				w.run(5 * time.Second)
				w.each(w.all(), 20, 5)
			})
		})
	}
}

// E35: the seed's review. Parents of a pending batch are split: nothing is given out before the batch is durable.
func TestNothingIsAssignedWhileLatestIsPendingAlsoWhenItsShardsAreSplit(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(s *Source) { s.Start, s.LatestBy, s.DiscoveryInterval = Latest(), ByScan, time.Second }, func(w *world) {
		w.put(0, 20)
		w.byHand = true
		hang := w.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Times: kinesistest.Always, Effect: kinesistest.Hang()})
		w.start()
		w.until(time.Minute, func() bool { return hang.Hits() > 0 })
		w.must(w.srv.Reshard("orders", 4))
		w.put(20, 20)
		w.run(5 * time.Second)
		if held := w.held(); len(held) > 0 {
			t.Fatalf("%v were given out while the batch was pending", held)
		}
		hang.Remove()
		w.until(time.Minute, func() bool { return w.wanted })
		w.run(5 * time.Second)
		if held := w.held(); len(held) > 0 {
			t.Fatalf("%v were given out before a checkpoint contained their positions", held)
		}
		w.checkpoint()
		w.byHand = false
		w.until(time.Minute, func() bool { return len(w.all()) >= 20 })
		w.run(time.Minute)
		// Which of the first twenty a scan finds is fixed: all of them. What was written while it ran comes from the children.
		w.checkpoint()
		w.each(w.committed(), 20, 20)
	})
}

// E49, E50: a parent's end is in a checkpoint that never completes.
func TestTheTailOfAParentIsReadAgainWhenItsEndWasNotDurableAndItsChildrenHaveWaited(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, nil, func(w *world) {
		w.put(0, 10)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 10 })
		w.checkpoint()
		w.byHand = true
		w.put(10, 10)
		_, _, err := w.on.Split(w.stream(), firstShard)
		w.must(err)
		w.put(20, 10)
		w.until(time.Minute, func() bool { return len(w.emitted()) >= 10 })
		w.run(30 * time.Second)
		if n := len(w.emitted()); n != 10 {
			w.t.Fatalf("%d records are out, want the 10 of the parent: its end is not durable", n)
		}
		w.cut() // which is never completed
		w.kill()
		w.start()
		w.until(time.Minute, func() bool { return len(w.emitted()) >= 10 })
		w.run(30 * time.Second)
		if n := len(w.emitted()); n != 10 {
			w.t.Fatalf("%d records are out after the restart, want the 10 of the parent again", n)
		}
		w.byHand = false
		w.until(time.Minute, func() bool { return len(w.all()) == 30 })
		w.checkpoint()
		w.each(w.committed(), 0, 30)
	})
}

func TestAJobWithoutCheckpointsTakesTheReadersWordForTheEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.never = true
		w.put(0, 10)
		w.start()
		w.must(w.srv.Reshard("orders", 2))
		w.put(10, 10)
		w.until(time.Minute, func() bool { return len(w.all()) == 20 })
		w.each(w.all(), 0, 20)
	})
}

func TestEventsMayBeLostAndChildrenWaitForTheNextCheckpoint(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.events = true
		w.put(0, 10)
		w.start()
		w.must(w.srv.Reshard("orders", 2))
		w.put(10, 10)
		w.run(time.Minute)
		if n := len(w.committed()) + len(w.all()); n != 10 {
			t.Fatalf("%d records, want the 10 of the parent", n)
		}
		w.checkpoint()
		w.until(time.Minute, func() bool { return len(w.all()) == 20 })
		w.checkpoint()
		w.each(w.committed(), 0, 20)
	})
}

func TestABoundedJobReadsWhatArrivedBeforeAndEnds(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(s *Source) { s.Stop = Latest() }, func(w *world) {
		w.readers = 2
		w.put(0, 50)
		w.must(w.srv.Reshard("orders", 3))
		w.put(50, 50)
		time.Sleep(3 * time.Second) //nolint:forbidigo // the clock of the bubble
		w.start()
		ended := func() bool { return w.tasks[0].ended && w.tasks[1].ended }
		w.until(2*time.Second, ended)
		w.put(100, 50)
		if !w.until(5*time.Minute, ended) {
			t.Fatalf("the job did not end; readers hold %v, error %v", w.held(), w.err)
		}
		w.checkpoint()
		w.each(w.committed(), 0, 100)
	})
}
