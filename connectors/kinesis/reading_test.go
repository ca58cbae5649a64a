package kinesis

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

const firstShard = "shardId-000000000000"

// arrive runs until n records were delivered.
func (w *world) arrive(n int) {
	w.t.Helper()
	if !w.until(10*time.Minute, func() bool { return len(w.all()) >= n }) {
		w.t.Fatalf("%d of %d records, error %v", len(w.all()), n, errors.Join(w.err, w.failed))
	}
}

func (w *world) fault(operation string, times int, e kinesistest.Effect) *kinesistest.Injection {
	return w.srv.Inject(kinesistest.Fault{Operation: operation, Times: times, Effect: e})
}

func TestE1EmptyPagesBehindTheTipAreNoTipAndPollingGoesOnAtTheRateOfTheService(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		empty := w.fault("GetRecords", 20, kinesistest.EmptyPage(time.Hour))
		w.put(0, 5)
		w.start()
		began := time.Now()
		w.arrive(5)
		if took := time.Since(began); empty.Hits() != 20 || took > 6*time.Second {
			t.Errorf("%d empty pages took %s", empty.Hits(), took)
		}
	})
}

func TestE2E3TheEndOfAShardComesAfterItsLastRecordsOrWithThem(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]*kinesistest.Effect{"with the last records": nil, "on a page of its own": new(kinesistest.WithholdEnd())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, nil, func(w *world) {
				if effect != nil {
					w.fault("GetRecords", 1, *effect)
				}
				w.put(0, 10)
				w.must(w.srv.Reshard("orders", 2))
				w.put(10, 10)
				w.start()
				w.arrive(20)
				w.checkpoint()
				w.each(w.committed(), 0, 20)
			})
		})
	}
}

func TestE4AnEndWithoutChildrenCountsOnlyWhenTheListSaysThatTheShardIsClosed(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 10)
		early := w.fault("GetRecords", 3, kinesistest.EndEarly())
		nothing := w.fault("GetRecords", 3, kinesistest.EmptyAnswer())
		w.start()
		w.arrive(10)
		w.run(time.Minute)
		w.put(10, 10)
		w.arrive(20)
		if early.Hits() != 3 || nothing.Hits() != 3 || len(w.held()) != 1 {
			t.Errorf("%d and %d hits, the reader holds %v", early.Hits(), nothing.Hits(), w.held())
		}
		w.fault("GetRecords", kinesistest.Always, kinesistest.OmitChildren())
		w.must(w.srv.Reshard("orders", 2))
		w.put(20, 10)
		w.arrive(30)
		w.checkpoint()
		w.each(w.committed(), 0, 30)
	})
}

func TestE6E8ExpiredIteratorsAreMadeAnewBehindTheLastRecordWithoutAHotLoop(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 10)
		w.start()
		w.arrive(10)
		expire := w.fault("GetRecords", 5, kinesistest.Expire())
		w.put(10, 10)
		began := time.Now()
		w.arrive(20)
		w.each(w.all(), 0, 20)
		if took := time.Since(began); expire.Hits() != 5 || took < time.Second {
			t.Errorf("%d expiries took %s: no pause in between", expire.Hits(), took)
		}
		if n, _ := w.metrics.get("expired_iterators"); n != 5 {
			t.Errorf("%v expiries were counted", n)
		}
	})
}

func TestE7AnIteratorThatExpiresBeforeAnyRecordIsMadeAnewAtTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.source.Start = Timestamp(time.Now().Add(5 * time.Second))
		w.put(0, 5)
		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock of the bubble
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 1 })
		w.run(5 * time.Second)
		w.fault("GetRecords", 2, kinesistest.Expire())
		w.put(5, 5)
		w.arrive(5)
		w.run(10 * time.Second)
		w.each(w.all(), 5, 5)
	})
}

func TestE9APauseOfSixMinutesEndsWithAnExpiredIteratorAndNoError(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 5)
		w.start()
		w.arrive(5)
		pauser := w.tasks[0].r.(sdk.Pauser)
		w.must(pauser.PauseOrResume([]sdk.SplitID{firstShard}, nil))
		w.run(2 * time.Second)
		calls := w.srv.Calls("GetRecords")
		w.put(5, 5)
		w.run(6 * time.Minute)
		if n := w.srv.Calls("GetRecords"); n > calls+1 || len(w.all()) != 5 {
			t.Errorf("%d polls and %d records during the pause", n-calls, len(w.all())-5)
		}
		w.must(pauser.PauseOrResume(nil, []sdk.SplitID{firstShard}))
		w.arrive(10)
		w.each(w.all(), 0, 10)
		if n, _ := w.metrics.get("expired_iterators"); n != 1 {
			t.Errorf("%v expiries", n)
		}
	})
}

func TestE10AThrottledShardDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, nil, func(w *world) {
		w.put(0, 40)
		throttle := w.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Shard: firstShard, Times: 10, Effect: kinesistest.Throttle()})
		w.start()
		w.until(2*time.Second, func() bool { return len(w.all()) > 10 })
		if n := len(w.all()); n < 10 || n == 40 {
			t.Errorf("%d records after two seconds, of which one of two shards was throttled", n)
		}
		w.arrive(40)
		w.each(w.all(), 0, 40)
		if n, _ := w.metrics.get("throttled_requests"); n != 10 || throttle.Hits() != 10 {
			t.Errorf("%v throttled requests, %d hits", n, throttle.Hits())
		}
	})
}

func TestE11APageOfTenMegabytesIsPaidForByFiveSeconds(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		big := make([]byte, 1<<20-100)
		for range 12 {
			_, err := w.srv.Put("orders", kinesistest.Record{PartitionKey: "k", Data: big})
			w.must(err)
		}
		began := time.Now()
		w.start()
		w.arrive(12)
		if took := time.Since(began); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("12 MB took %s", took)
		}
		if n, _ := w.metrics.get("throttled_requests"); n > 0 {
			t.Errorf("%v requests were refused", n)
		}
	})
}

func TestE20ARecordLargerThanATurnIsDeliveredOnceAndEndsTheTurn(t *testing.T) {
	t.Parallel()
	const large = 10<<20 - 100 // ten times what a turn of the test may emit
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 1)
		_, err := w.srv.Put("orders", kinesistest.Record{PartitionKey: "k", Data: make([]byte, large)})
		w.must(err)
		w.put(1, 1)
		w.start()
		alone := false
		w.until(time.Minute, func() bool {
			all := w.all()
			alone = alone || len(all) == 2 && len(all[1].Value) == large
			return len(all) == 3
		})
		if !alone || len(w.all()) != 3 {
			t.Errorf("%d records; the large one ended its turn: %t", len(w.all()), alone)
		}
		w.run(10 * time.Second)
		if n := len(w.all()); n != 3 {
			t.Errorf("%d records", n)
		}
	})
}

func TestE12NeverMoreThanFiveCallsASecondForAShardAlsoAfterAFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := map[string][]time.Time{}
		srv, err := kinesistest.New(kinesistest.Options{InMemory: true, Observe: func(c kinesistest.Call) {
			if c.Operation == "GetRecords" {
				mu.Lock()
				defer mu.Unlock()
				calls[c.Shard] = append(calls[c.Shard], c.At)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		w := &world{t: t, srv: srv, on: srv, readers: 2, source: sourceOf(srv), next: 1}
		defer func() { w.kill() }()
		w.must(srv.CreateStream("orders", 2))
		w.source.MaxRecords = 1
		w.put(0, 60)
		w.start()
		w.run(3 * time.Second)
		w.kill()
		w.start()
		w.run(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for shard, at := range calls {
			for i := range at {
				if i >= 5 && at[i].Sub(at[i-5]) < time.Second {
					t.Errorf("%s: six calls in %s", shard, at[i].Sub(at[i-5]))
				}
			}
		}
		if len(calls) != 2 || len(calls[firstShard]) < 20 {
			t.Errorf("%d shards, %d calls: nothing was shown", len(calls), len(calls[firstShard]))
		}
	})
}

func TestE13E14WhateverBreaksOrHangsIsTriedAgainWithTheSameIterator(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]kinesistest.Effect{
		"internal failure": kinesistest.InternalError(), "reset": kinesistest.Reset(), "cut": kinesistest.Cut(),
		"answer lost": kinesistest.LoseAnswer(), "hang": kinesistest.Hang(), "KMS throttles": kinesistest.Fail("KMSThrottlingException", "injected"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, nil, func(w *world) {
				w.put(0, 10)
				fault := w.fault("GetRecords", 3, effect)
				w.start()
				w.arrive(10)
				w.each(w.all(), 0, 10)
				if n := w.srv.Calls("GetShardIterator"); n != 1 || fault.Hits() != 3 {
					t.Errorf("%d iterators for %d faults", n, fault.Hits())
				}
			})
		})
	}
}

func TestE14ACloseDoesNotWaitForARequestThatHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) { s.RequestTimeout = 5 * time.Minute }, func(w *world) {
		hang := w.fault("GetRecords", kinesistest.Always, kinesistest.Hang())
		w.start()
		w.until(time.Minute, func() bool { return hang.Hits() > 0 })
		began := time.Now()
		w.tasks[0].r.Wakeup()
		if err := w.tasks[0].r.Close(); err != nil || time.Since(began) > time.Second {
			t.Errorf("the close took %s, error %v", time.Since(began), err)
		}
		w.tasks = nil
	})
}

func TestE16AnIteratorThatIsTrappedBeforeTheOldestRecord(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 5)
		w.start()
		w.arrive(5)
		w.fault("GetRecords", 10, kinesistest.EmptyPage(25*time.Hour))
		w.put(5, 5)
		w.until(time.Minute, func() bool { return false })
		if !errors.Is(w.err, ErrLost) || !errors.Is(w.err, sdk.ErrFatal) {
			t.Errorf("error %v", w.err)
		}
	})
	inWorld(t, 1, func(s *Source) { s.OnLost = Continue }, func(w *world) {
		w.fault("GetRecords", 5, kinesistest.EmptyPage(25*time.Hour))
		w.put(0, 5)
		w.start()
		w.arrive(5)
		w.each(w.all(), 0, 5)
		if n, _ := w.metrics.get("lost_positions"); n != 1 {
			t.Errorf("%v lost positions", n)
		}
	})
}

func TestE17AJobThatWasStoppedForLongerThanTheRetentionSaysSo(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{Fail, Continue} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, func(s *Source) { s.OnLost = policy }, func(w *world) {
				w.put(0, 5)
				w.start()
				w.arrive(5)
				w.checkpoint()
				w.put(5, 5)
				w.kill()
				w.srv.Advance(25 * time.Hour)
				time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble: what was known of the stream is old
				w.put(10, 5)
				w.start()
				w.until(time.Minute, func() bool { return len(w.all()) == 10 })
				if policy == Fail {
					if !errors.Is(w.err, ErrLost) {
						t.Errorf("error %v", w.err)
					}
					return
				}
				if n, _ := w.metrics.get("lost_positions"); n != 1 || len(w.all()) != 10 {
					t.Errorf("%v lost positions, %d records", n, len(w.all()))
				}
			})
		})
	}
}

func TestE17AnIdleShardIsNotTakenForOneThatLostRecords(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 5)
		w.start()
		w.arrive(5)
		w.srv.Advance(30 * time.Hour)
		w.run(5 * time.Minute)
		w.checkpoint()
		w.kill()
		w.srv.Advance(20 * time.Hour)
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble: what was known of the stream is old
		w.start()
		w.put(5, 5)
		w.arrive(10)
		w.each(w.all(), 0, 10)
	})
}

func TestE18WhatIsMissingIsLookedInto(t *testing.T) {
	t.Parallel()
	t.Run("a stream that was deleted", func(t *testing.T) {
		t.Parallel()
		inWorld(t, 1, nil, func(w *world) {
			w.start()
			w.until(time.Minute, func() bool { return len(w.held()) == 1 })
			w.must(w.srv.DeleteStream("orders"))
			w.run(time.Minute)
			if err := errors.Join(w.err, w.failed); !errors.Is(err, ErrStreamMissing) || !errors.Is(err, sdk.ErrFatal) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("a stream that was created anew", func(t *testing.T) {
		t.Parallel()
		onBoth(t, 1, nil, func(w *world) {
			w.put(0, 5)
			w.start()
			w.arrive(5)
			w.checkpoint()
			w.kill()
			w.must(w.on.DeleteStream(w.stream()))
			w.run(time.Minute)
			w.must(w.on.CreateStream(w.stream(), 1))
			w.start()
			w.until(time.Minute, func() bool { return false })
			if err := errors.Join(w.err, w.failed); !errors.Is(err, ErrRecreated) || !errors.Is(err, sdk.ErrFatal) {
				w.t.Errorf("error %v", err)
			}
		})
	})
	t.Run("a shard that nobody knows for a moment", func(t *testing.T) {
		t.Parallel()
		inWorld(t, 1, nil, func(w *world) {
			w.put(0, 5)
			w.fault("GetRecords", 3, kinesistest.Fail("ResourceNotFoundException", "injected"))
			w.start()
			w.arrive(5)
			w.each(w.all(), 0, 5)
		})
	})
}

func TestE22APageThatIsOnlyPartlyEmittedIsKeptAcrossACheckpoint(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 300)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) >= 64 })
		if n := len(w.all()); n >= 300 {
			t.Fatalf("all %d records are out at once", n)
		}
		w.checkpoint()
		w.kill()
		w.start()
		w.arrive(300)
		w.each(w.all(), 0, 300)
	})
}

func TestARecordWithoutPartitionKeyHasANullKey(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		_, err := w.srv.Put("orders", kinesistest.Record{Data: []byte("x")})
		w.must(err)
		w.start()
		w.arrive(1)
		if r := w.all()[0]; r.Key != nil || string(r.Value) != "x" {
			t.Errorf("%+v", r)
		}
	})
}

func TestMemoryIsBoundedOverReadersAndNoneStarves(t *testing.T) {
	t.Parallel()
	inWorld(t, 8, func(s *Source) { s.InFlightBytes = 1 << 20 }, func(w *world) {
		w.readers = 2
		w.put(0, 200)
		hang := w.fault("GetRecords", kinesistest.Always, kinesistest.Hang())
		w.start()
		w.run(10 * time.Second)
		// A first page is taken to have 1 MiB, which is all there is, so each reader has the one page that it may have beyond the limit.
		if n := hang.Hits(); n != 2 || len(w.held()) != 8 {
			t.Errorf("two readers fetch %d pages of %d shards at a time", n, len(w.held()))
		}
		hang.Remove()
		w.arrive(200)
		w.each(w.all(), 0, 200)
	})
}

func TestPositionsOfRecordsCanBeClaimed(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 5)
		w.start()
		w.arrive(5)
		rec := w.all()[2]
		claimed, err := w.source.PositionAfter(&rec)
		w.must(err)
		split, err := Codec{}.Decode(claimed.Version, claimed.Data)
		w.must(err)
		w.tasks[0].out = nil
		w.last = &saved{state: lineage.New(w.source.topology(1)).Encode(), splits: [][]Split{{split}}, finished: [][]Split{nil}}
		w.kill()
		w.start()
		w.arrive(2)
		w.each(w.all(), 3, 2)
	})
}
