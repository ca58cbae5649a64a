package kinesis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

func TestE23ShardsThatComeInPagesAreTheSame(t *testing.T) {
	t.Parallel()
	const shards = 12
	for _, size := range []int32{1, 2, 100} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			onBoth(t, shards, func(s *Source) { s.pageSize = size }, func(w *world) {
				w.start()
				if !w.until(time.Minute, func() bool { return len(w.held()) == shards }) {
					w.t.Fatalf("%v are held, error %v", w.held(), w.failed)
				}
				if w.wall {
					return
				}
				if n, want := w.srv.Calls("ListShards"), (shards+int(size)-1)/int(size); n != want {
					w.t.Errorf("%d calls, want %d", n, want)
				}
			})
		})
	}
}

func TestE43ThousandsOfShardsAreDiscoveredAndAssigned(t *testing.T) {
	t.Parallel()
	const shards = 4000
	inWorld(t, shards, func(s *Source) { s.PollInterval = time.Minute }, func(w *world) {
		w.readers = 4
		w.start()
		if !w.until(time.Minute, func() bool { return len(w.held()) == shards }) {
			t.Fatalf("%d shards are held, error %v", len(w.held()), w.failed)
		}
		if n := w.srv.Calls("ListShards"); n != 4 {
			t.Errorf("%d calls", n)
		}
		w.checkpoint()
		if n := len(w.last.state.Data); n > 12*shards {
			t.Errorf("the state has %d bytes", n)
		}
	})
}

func TestE24E25AListThatFailsHalfWayChangesNothing(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]kinesistest.Effect{
		"the token expired": kinesistest.ExpireToken(), "an internal failure": kinesistest.InternalError(), "a page comes twice": kinesistest.RepeatPage(),
		"E42 the stream is being changed": kinesistest.Fail("ResourceInUseException", "injected"), "E42 too many calls": kinesistest.LimitExceeded(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 12, func(s *Source) { s.pageSize = 5 }, func(w *world) {
				fault := w.srv.Inject(kinesistest.Fault{Operation: "ListShards", Skip: 1, Effect: effect})
				w.start()
				if !w.until(time.Minute, func() bool { return len(w.held()) == 12 }) {
					t.Fatalf("%d shards are held, error %v", len(w.held()), w.failed)
				}
				if fault.Hits() != 1 {
					t.Errorf("%d hits", fault.Hits())
				}
			})
		})
	}
}

func TestE29AChildThatIsListedWhileItsParentLooksOpenWaits(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) { s.DiscoveryInterval = time.Second }, func(w *world) {
		w.put(0, 10)
		w.start()
		w.arrive(10)
		w.byHand = true
		w.fault("ListShards", kinesistest.Always, kinesistest.ParentsLookOpen())
		w.must(w.srv.Reshard("orders", 2))
		w.put(10, 10)
		w.run(10 * time.Second)
		if n := len(w.all()); n != 10 || w.failed != nil {
			t.Errorf("%d records before the parent's end is durable, error %v", n, w.failed)
		}
		w.checkpoint()
		w.arrive(20)
		w.checkpoint()
		w.each(w.committed(), 0, 20)
	})
}

func TestE31AnUnfinishedShardThatDisappearsFailsTheJobAndFailsItAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(s *Source) { s.DiscoveryInterval = time.Second }, func(w *world) {
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 2 })
		w.checkpoint()
		for range 2 {
			omit := w.fault("ListShards", kinesistest.Always, kinesistest.OmitShards(firstShard))
			w.run(time.Minute)
			if !errors.Is(w.failed, ErrLost) || !errors.Is(w.failed, sdk.ErrFatal) || !strings.Contains(w.failed.Error(), firstShard) {
				t.Fatalf("error %v", w.failed)
			}
			omit.Remove()
			w.kill()
			w.start()
		}
		// A list that lacks it once is no list without it.
		w.fault("ListShards", 2, kinesistest.OmitShards(firstShard))
		w.run(time.Minute)
		if w.failed != nil {
			t.Errorf("error %v", w.failed)
		}
	})
}

func TestE38GenerationsThatExpiredWhileTheJobWasStopped(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{Fail, Continue} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inWorld(t, 2, func(s *Source) { s.OnLost, s.DiscoveryInterval = policy, time.Second }, func(w *world) {
				w.put(0, 10)
				w.start()
				w.arrive(10)
				w.checkpoint()
				w.kill()
				w.must(w.srv.Reshard("orders", 1))
				w.srv.Advance(13 * time.Hour)
				w.must(w.srv.Reshard("orders", 2))
				w.srv.Advance(25 * time.Hour)
				w.put(10, 10)
				w.start()
				w.until(2*time.Minute, func() bool { return len(w.all()) == 20 })
				if err := errors.Join(w.err, w.failed); policy == Fail {
					if !errors.Is(err, ErrLost) {
						t.Errorf("error %v", err)
					}
					return
				} else if err != nil {
					t.Errorf("error %v", err)
				}
				w.checkpoint()
				w.each(w.committed(), 0, 20)
			})
		})
	}
}

func TestE45ABatchOfLatestPositionsIsAppliedAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	inWorld(t, 4, func(s *Source) { s.Start, s.LatestBy = Latest(), ByScan }, func(w *world) {
		w.put(0, 40)
		fail := w.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Shard: firstShard, Times: maxScanTries, Effect: kinesistest.InternalError()})
		w.start()
		w.until(5*time.Minute, func() bool { return fail.Hits() == maxScanTries })
		w.run(500 * time.Millisecond)
		for _, n := range w.enum.(*enumerator).top.Nodes() {
			if n.Position.Concrete() {
				t.Errorf("%s has the position %s after a batch that failed", n.ID, n.Position)
			}
		}
		w.until(time.Minute, func() bool { return len(w.held()) == 4 })
		w.put(40, 20)
		w.arrive(20)
		w.each(w.all(), 40, 20)
	})
}

func TestE46TheClockOfTheServiceCountsAndNotTheOneHere(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) { s.Start = Latest() }, func(w *world) {
		w.put(0, 10)
		w.srv.Advance(-10 * time.Minute) // so the clock here is ten minutes ahead
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 1 })
		w.put(10, 5)
		w.until(time.Minute, func() bool { return len(w.all()) >= 5 })
		if err := errors.Join(w.err, w.failed); err != nil || len(w.all()) < 5 {
			t.Errorf("%d records, error %v", len(w.all()), err)
		}
	})
}

func TestE48ATimestampOlderThanTheRetentionIsTheOldestRecord(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]*kinesistest.Effect{"corrected": nil, "refused": new(kinesistest.Fail("InvalidArgumentException", "injected"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, func(s *Source) { s.Start = Timestamp(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)) }, func(w *world) {
				if effect != nil {
					w.fault("GetShardIterator", 1, *effect)
					w.srv.Inject(kinesistest.Fault{Operation: "ListShards", Skip: 1, Effect: *effect})
				}
				w.put(0, 5)
				w.start()
				w.arrive(5)
				w.each(w.all(), 0, 5)
			})
		})
	}
}

func TestAStartInTheFutureWaitsForIt(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.source.Start = Timestamp(time.Now().Add(10 * time.Minute))
		w.put(0, 5)
		w.start()
		w.run(11 * time.Minute)
		w.put(5, 5)
		w.arrive(5)
		w.run(time.Minute)
		w.each(w.all(), 5, 5)
	})
}

func TestAStartAtSequenceNumbersLeavesAncestorsOutAndReadsDescendantsWhole(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 5)
		lower, upper, err := w.srv.Split("orders", firstShard)
		w.must(err)
		w.put(5, 40)
		records, err := w.srv.Records("orders")
		w.must(err)
		firsts, want := map[string]string{}, 0
		for _, r := range records {
			if r.Shard != firstShard {
				want++
			}
			if _, ok := firsts[r.Shard]; !ok {
				firsts[r.Shard] = r.SequenceNumber
			}
		}
		w.source.Start = Sequences(map[string]string{lower: firsts[lower], upper: firsts[upper]})
		w.must(w.srv.Reshard("orders", 4))
		w.put(45, 20)
		w.start()
		w.arrive(want + 20)
		w.run(time.Minute)
		w.checkpoint()
		w.each(w.committed(), 5, 60)
	})
	inWorld(t, 2, func(s *Source) { s.Start = Sequences(map[string]string{firstShard: "1"}) }, func(w *world) {
		w.start()
		w.run(time.Minute)
		if config, ok := errors.AsType[*ConfigError](w.failed); !ok || config.Option != "start" || !strings.Contains(config.Problem, "shardId-000000000001") {
			t.Errorf("error %v", w.failed)
		}
	})
}

func TestTheLineageIsMeasured(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, nil, func(w *world) {
		w.byHand = false
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 2 })
		if v, ok := w.metrics.get("shards_active"); v != 2 || !ok {
			t.Errorf("%v active shards", v)
		}
		w.run(3 * time.Second)
		if v, ok := w.metrics.get("millis_behind_max"); v != 0 || !ok {
			t.Errorf("behind %v, known %t", v, ok)
		}
	})
}

func TestTilesFindsGaps(t *testing.T) {
	t.Parallel()
	h := func(from, to byte) lineage.HashRange {
		r := lineage.HashRange{Known: true, Start: [16]byte{from}, End: [16]byte{to}}
		for i := 1; i < 16; i++ {
			r.End[i] = 0xff
		}
		return r
	}
	for _, c := range []struct {
		ranges []lineage.HashRange
		want   bool
	}{
		{[]lineage.HashRange{h(0, 0x7f), h(0x80, 0xff)}, true},
		{[]lineage.HashRange{h(0x80, 0xff), h(0, 0x7f)}, true},
		{[]lineage.HashRange{h(0, 0xff)}, true},
		{[]lineage.HashRange{h(0, 0x7f), h(0x81, 0xff)}, false},
		{[]lineage.HashRange{h(0, 0x7f)}, false},
		{[]lineage.HashRange{h(0, 0x80), h(0x80, 0xff)}, false},
		{nil, false},
	} {
		if got := tiles(shardsOf(c.ranges)); got != c.want {
			t.Errorf("%v: %t", c.ranges, got)
		}
	}
}
