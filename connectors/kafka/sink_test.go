package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// Everything here runs against the embedded broker and against a real one. What the two do differently for this sink: the real one
// completes a commit after it has answered, answers CONCURRENT_TRANSACTIONS meanwhile, calls ended transactions CompleteCommit
// and CompleteAbort, and aborts an expired one up to its sweep interval late.
var sinkScenarios = map[string]func(*testing.T, *target){
	"records become visible with their commit and arrive unchanged":  testSinkRecords,
	"nothing written is nothing prepared":                            testSinkNothing,
	"a crash between any two steps loses and repeats nothing":        testSinkCrashes,
	"an aborted checkpoint's records belong to the next one":         testSinkAbortedCheckpoint,
	"a task restarts alone":                                          testSinkRegion,
	"a writer that hangs leaves nothing open":                        testSinkLeftBehind,
	"a restart with another number of tasks finds every id":          testSinkRescale,
	"a restore waits for a coordinator that is down":                 testSinkCoordinatorDown,
	"a writer of an earlier attempt is fenced":                       testSinkZombie,
	"an expired transaction is an error that counts its records":     testSinkExpired,
	"a transaction that expires while it is written is named":        testSinkExpiresInHand,
	"an id used since does not hide what was committed":              testSinkReusedID,
	"a commit after a take-over is a loss":                           testSinkTakenOver,
	"an id that the cluster forgot does not hide what was committed": testSinkForgottenID,
	"records deleted since are no reason to stop":                    testSinkDeletedRecords,
	"a committed transaction cannot be discarded":                    testSinkDiscardCommitted,
	"close aborts what is not prepared":                              testSinkClose,
	"too many prepared transactions are an error":                    testSinkTooMany,
	"ids stay few":                         testSinkFewIDs,
	"no two transactions share an epoch":   testSinkEpochs,
	"other jobs are left alone":            testSinkOtherJob,
	"partitions by key as the Java client": testSinkJavaPartitions,
	"partitions kept":                      testSinkKeep,
	"refusals are named":                   testSinkRefusals,
	"at least once":                        testSinkAtLeastOnce,
}

func runSinkScenarios(t *testing.T, g *target) {
	for name, scenario := range sinkScenarios {
		t.Run(name, func(t *testing.T) { scenario(t, g) })
	}
}

func TestSinkOnTheEmbeddedBroker(t *testing.T) {
	b := kafkatest.Start(t, kafkatest.Options{})
	runSinkScenarios(t, &target{addrs: b.Addrs()})
}

func TestSinkOnARealBroker(t *testing.T) {
	s := kafkaserver.Start(t, kafkaserver.Options{})
	g := &target{addrs: s.Addrs(), real: true}
	runSinkScenarios(t, g)
	// The embedded broker does not say that the last transaction of an id was committed.
	t.Run("a restore of an older checkpoint repeats nothing unasked", func(t *testing.T) { testSinkOlder(t, g) })
}

func testSinkRecords(t *testing.T, g *target) {
	for _, compression := range []Compression{NoCompression, Gzip, Snappy, LZ4, Zstd} {
		g := g.fresh(t, 1)
		g.sink.Compression = compression
		w := g.writer(0)
		w.restore()
		at := time.UnixMilli(time.Now().UnixMilli())
		var b sdk.Batch
		b.Append(&sdk.Record{Key: []byte("k"), Value: []byte("v"), Time: at, Headers: []sdk.Header{{Key: "a", Value: []byte("1")}, {Key: "a"}, {Key: "", Value: []byte{}}}})
		b.Append(&sdk.Record{Key: nil, Value: nil, Time: at})
		b.Append(&sdk.Record{Key: []byte{}, Value: []byte{}, Time: at})
		g.must(w.Write(t.Context(), &b))
		data := w.prepare(1)
		b.Reset() // what was written must not depend on it any more
		if seen, open := g.visible(); len(seen) > 0 || !open {
			t.Fatalf("%d records are visible before the commit", len(seen))
		}
		w.commitAll(data, data)
		got := g.committed()
		if len(got) != 3 {
			t.Fatalf("got %d records", len(got))
		}
		r := got[0]
		if string(r.Key) != "k" || string(r.Value) != "v" || !r.Timestamp.Equal(at) || len(r.Headers) != 3 ||
			string(r.Headers[0].Value) != "1" || r.Headers[1].Value != nil || r.Headers[2].Value == nil {
			t.Errorf("got %+v", r)
		}
		if got[1].Key != nil || got[1].Value != nil || got[2].Key == nil || got[2].Value == nil {
			t.Errorf("null and empty are confused: %+v, %+v", got[1], got[2])
		}
	}
}

func testSinkNothing(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	for id := range sdk.CheckpointID(3) {
		g.must(w.Write(t.Context(), &sdk.Batch{}))
		if data, err := w.Prepare(t.Context(), id); data != nil || err != nil {
			t.Fatalf("prepared %q, %v", data, err)
		}
	}
	g.must(w.Close(t.Context()))
	g.must(w.Close(t.Context()))
	ids, err := transactions{cluster{g.client(), ""}}.list(t.Context(), DefaultIDPrefix, g.job)
	if len(ids) > 0 || err != nil {
		t.Errorf("ids %q, %v", ids, err)
	}
}

// A job of two tasks and two checkpoints is killed before step k, for every k, and restored twice, the first time with a kill in the
// middle. What the newest durable checkpoint covers must be visible, and nothing else.
func testSinkCrashes(t *testing.T, g *target) {
	for k := range 12 {
		g := g.fresh(t, 2)
		var manifest [][]byte
		covered := 0
		func() {
			steps := 0
			dead := func() bool { steps++; return steps > k }
			a, b := g.writer(0), g.writer(1)
			defer a.kill()
			defer b.kill()
			a.restore()
			for id := range 2 {
				from := id * 20
				a.write(from, from+10)
				b.write(from+10, from+20)
				if dead() {
					return
				}
				first := a.prepare(sdk.CheckpointID(id + 1))
				if dead() {
					return
				}
				both := [][]byte{first, b.prepare(sdk.CheckpointID(id + 1))}
				a.write(1000, 1010) // the next checkpoint's
				if dead() {
					return
				}
				manifest, covered = both, from+20
				if dead() {
					return
				}
				a.commitAll(both[0])
				if dead() {
					return
				}
				b.commitAll(both[1])
				if dead() || id == 1 {
					return
				}
				g.must(a.current.abort(t.Context())) // not the next checkpoint's after all
				a.pool.give(a.current.slot)
				a.current = nil
			}
		}()
		// Killed in the middle of its Restore: half of it is committed, and nothing swept.
		c := g.writer(0)
		if len(manifest) > 0 {
			c.commitAll(manifest[0])
		}
		c.kill()
		for range 2 {
			w := g.writer(0)
			w.restore(manifest...)
			g.wantNumbers([2]int{0, covered})
			w.kill()
		}
		// And goes on.
		w := g.writer(1)
		g.writer(0).restore(manifest...)
		w.write(5000, 5005)
		w.commitAll(w.prepare(9))
		g.wantNumbers([2]int{0, covered}, [2]int{5000, 5005})
		if t.Failed() {
			t.Fatalf("step %d", k)
		}
	}
}

func testSinkAbortedCheckpoint(t *testing.T, g *target) {
	g = g.fresh(t, 2)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	first := w.prepare(1) // aborted: nobody commits or discards it
	w.write(10, 20)
	second := w.prepare(2)
	w.write(20, 30)
	w.commitAll(first, second)
	w.commitAll(w.prepare(3))
	g.wantNumbers([2]int{0, 30})

	w.write(30, 40)
	first = w.prepare(4)
	w.write(40, 50)
	second = w.prepare(5)
	w.kill()
	g.writer(3).restore(first, second)
	g.wantNumbers([2]int{0, 50})
}

// A cluster that lost a broker names another coordinator some seconds later. A start in between waits for that, and does not end the job.
func testSinkCoordinatorDown(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	w.kill()

	var mu sync.Mutex
	var down int // so many connections are refused
	var open []net.Conn
	g.sink.Client = []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if down > 0 {
			down--
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			open = append(open, c)
		}
		return c, err
	})}
	w = g.writer(0)
	mu.Lock()
	for _, c := range open {
		c.Close()
	}
	down = 3
	mu.Unlock()
	w.restore(data)
	mu.Lock()
	defer mu.Unlock()
	if down > 0 {
		t.Errorf("%d connections were not tried", down)
	}
	g.wantNumbers([2]int{0, 10})
}

// A state directory that came out of a backup, or --restore of an older checkpoint.
func testSinkOlder(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	var manifests [][]byte
	const rounds = 10 // more than there are ids
	for round := range rounds {
		w.write(10*round, 10*round+10)
		manifests = append(manifests, w.prepare(sdk.CheckpointID(round+1)))
		w.commitAll(manifests[round])
	}
	w.kill()
	err := g.writer(0).Restore(t.Context(), manifests[:1])
	if !errors.Is(err, ErrOlder) || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), "on_older") {
		t.Fatalf("got %v", err)
	}
	w = g.writer(0)
	w.restore(manifests[rounds-1]) // the newest one, twice
	w.kill()
	w = g.writer(0)
	w.restore(manifests[rounds-1])
	w.write(100, 110)
	w.kill() // before its checkpoint
	g.writer(0).restore(manifests[rounds-1])
	g.wantNumbers([2]int{0, 100})

	g.sink.OnOlder = OlderContinue
	w = g.writer(0)
	w.restore(manifests[0])
	w.write(100, 110)
	w.commitAll(w.prepare(11))
	g.wantNumbers([2]int{0, 110})
}

func TestATransactionMustOutliveTheCheckpointInterval(t *testing.T) {
	t.Parallel()
	s := Sink{TransactionTimeout: 15 * time.Minute}
	if err := s.CheckInterval(7*time.Minute + 30*time.Second); err != nil {
		t.Error(err)
	}
	err := s.CheckInterval(10 * time.Minute)
	if err == nil || !strings.Contains(err.Error(), "15m0s") || !strings.Contains(err.Error(), "10m0s") || !strings.Contains(err.Error(), "20m0s") {
		t.Errorf("got %v", err)
	}
	s.Delivery = AtLeastOnce
	if err := s.CheckInterval(time.Hour); err != nil {
		t.Error(err)
	}
}

func testSinkRegion(t *testing.T, g *target) {
	g = g.fresh(t, 2)
	other := g.writer(1)
	w := g.writer(0)
	w.restore()
	other.write(100, 110)
	for round := range sdk.CheckpointID(3) {
		from := int(round) * 10
		w.write(from, from+10)
		durable := w.prepare(2*round + 1)
		w.write(500, 510)
		younger := w.prepare(2*round + 2)
		w.write(600, 610)
		if round == 1 {
			g.must(w.Close(t.Context()))
		} else {
			w.kill()
		}
		w = g.writer(0)
		w.commitAll(durable)
		g.must(w.Discard(t.Context(), younger))
		g.must(w.Discard(t.Context(), younger))
	}
	w.write(30, 40)
	w.commitAll(w.prepare(20))
	other.commitAll(other.prepare(20))
	g.wantNumbers([2]int{0, 40}, [2]int{100, 110})
}

// The engine leaves a writer behind that does not return, and starts its task alone again without knowing what that had prepared.
func testSinkLeftBehind(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	w.prepare(1)
	w.write(10, 20)
	g.must(w.Flush(t.Context()))
	next := g.writer(0)
	next.write(0, 20)
	next.commitAll(next.prepare(2))
	g.wantNumbers([2]int{0, 20})
}

func testSinkRescale(t *testing.T, g *target) {
	g = g.fresh(t, 3)
	tasks := []*task{g.writer(0), g.writer(1), g.writer(2)}
	tasks[0].restore()
	var manifest [][]byte
	for i, w := range tasks {
		w.write(i*10, i*10+10)
		manifest = append(manifest, w.prepare(1))
		w.write(900, 910)
	}
	for _, w := range tasks {
		w.kill()
	}
	one := g.writer(0) // down to one
	one.restore(manifest...)
	g.wantNumbers([2]int{0, 30})
	one.write(30, 40)
	next := one.prepare(2)
	one.kill()
	tasks = []*task{g.writer(0), g.writer(1), g.writer(2), g.writer(3)} // up to four
	tasks[0].restore(next)
	for i, w := range tasks {
		w.write(40+i*10, 50+i*10)
		w.commitAll(w.prepare(3))
	}
	g.wantNumbers([2]int{0, 80})
}

func testSinkZombie(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	busy, idle, ready := g.writer(0), g.writer(1), g.writer(2)
	busy.restore()
	for _, w := range []*task{busy, idle, ready} {
		w.write(0, 10)
	}
	idleData := idle.prepare(1)
	idle.commitAll(idleData) // it may begin another one under the same id, with an epoch that is fresh
	stale := ready.prepare(1)

	now := g.writer(0)
	now.restore(idleData)
	g.wantNumbers([2]int{0, 10})
	now.write(10, 20)
	err := busy.Write(t.Context(), counting(900, 901))
	if err == nil {
		_, err = busy.Prepare(t.Context(), 2)
	}
	if !errors.Is(err, ErrFenced) || errors.Is(err, sdk.ErrFatal) {
		t.Errorf("a busy writer of an earlier attempt: %v", err)
	}
	g.must(busy.Close(t.Context()))
	if err := ready.Commit(t.Context(), stale); !errors.Is(err, ErrLost) {
		t.Errorf("a commit by an earlier attempt: %v", err)
	}
	now.commitAll(now.prepare(2))
	g.wantNumbers([2]int{0, 20})
}

func testSinkExpired(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	g.sink.TransactionTimeout = time.Second
	w := g.writer(0)
	w.restore()
	w.write(0, 7)
	data := w.prepare(42)
	w.kill()
	g.eventually("expired", func() bool { _, open := g.visible(); return !open })

	for range 2 {
		err := g.writer(0).Restore(t.Context(), [][]byte{data})
		lost, ok := errors.AsType[*TransactionError](err)
		if !ok || !errors.Is(err, ErrLost) || !errors.Is(err, sdk.ErrFatal) || lost.Records != 7 || lost.Checkpoint != 42 || lost.Timeout != time.Second {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"7 records", "checkpoint 42", "transaction_timeout 1s", "on_lost"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is missing in %v", part, err)
			}
		}
	}
	g.sink.OnLost = LostContinue
	w = g.writer(0)
	w.restore(data)
	if n, _ := w.metrics.get("records_lost"); n != 7 {
		t.Errorf("%v records counted as lost", n)
	}
	w.write(7, 9)
	w.commitAll(w.prepare(43))
	g.wantNumbers([2]int{7, 9})
}

// While the writer lives, a prepared transaction that expired must not pass as committed either.
func testSinkExpiresInHand(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	g.sink.TransactionTimeout = time.Second
	w := g.writer(0)
	w.restore()
	w.write(0, 5)
	prepared := w.prepare(1)
	w.write(5, 10)
	g.must(w.Flush(t.Context()))
	g.eventually("expired", func() bool { _, open := g.visible(); return !open })
	if err := w.Commit(t.Context(), prepared); !errors.Is(err, ErrLost) {
		t.Errorf("commit of an expired transaction: %v", err)
	}
	err := w.Write(t.Context(), counting(10, 12))
	if err == nil {
		_, err = w.Prepare(t.Context(), 2)
	}
	if !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "transaction_timeout = 1s") {
		t.Errorf("a transaction that expired while it was written: %v", err)
	}
	g.wantNumbers()
}

// A commit that is repeated must never end another transaction, so nothing but the stored producer id and epoch may identify it.
func testSinkEpochs(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	seen, defaults := make(map[key]bool), g.sink.withDefaults()
	for i := range 8 { // more than there are ids
		w.write(i*10, i*10+10)
		data := w.prepare(sdk.CheckpointID(i + 1))
		p, err := defaults.decodePrepared(data, g.job)
		g.must(err)
		if seen[p.key()] {
			t.Errorf("transaction %d has producer %d epoch %d, and so had one before it", i+1, p.ProducerID, p.Epoch)
		}
		seen[p.key()] = true
		w.commitAll(data)
	}
}

func testSinkReusedID(t *testing.T, g *target) {
	g = g.fresh(t, 2)
	g.sink.OnOlder = OlderContinue
	w := g.writer(0)
	w.restore()
	var all [][]byte
	for i := range 8 { // more than there are ids
		w.write(i*10, i*10+10)
		all = append(all, w.prepare(sdk.CheckpointID(i+1)))
		w.commitAll(all[i])
	}
	w.kill()
	for _, old := range all {
		w := g.writer(0)
		w.restore(old)
		w.kill()
	}
	g.wantNumbers([2]int{0, 80})
}

func testSinkTakenOver(t *testing.T, g *target) {
	g = g.fresh(t, 2)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	g.writer(0).restore() // a run that knows nothing of it
	err := g.writer(0).Restore(t.Context(), [][]byte{data})
	if !errors.Is(err, ErrLost) || !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("got %v", err)
	}
	if err := w.Commit(t.Context(), data); !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	g.wantNumbers()
}

// forget gives a prepared transaction an id that the cluster does not know.
func (g *target) forget(data []byte, change func(*prepared)) []byte {
	g.t.Helper()
	p, err := g.sink.decodePrepared(data, g.job)
	if err != nil {
		s := g.sink.withDefaults()
		p, err = s.decodePrepared(data, g.job)
	}
	g.must(err)
	p.ID = slotID(DefaultIDPrefix, g.job, 77, 0)
	if change != nil {
		change(p)
	}
	changed, err := p.encode()
	g.must(err)
	return changed
}

func testSinkForgottenID(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	w.commitAll(data)
	w.write(10, 20)
	discarded := w.prepare(2)
	g.must(w.Discard(t.Context(), discarded))
	g.writer(0).restore(g.forget(data, nil))
	if err := g.writer(0).Restore(t.Context(), [][]byte{g.forget(discarded, nil)}); !errors.Is(err, ErrLost) {
		t.Errorf("aborted, and the id forgotten: %v", err)
	}
	elsewhere := g.forget(data, func(p *prepared) { p.Epoch += 5 })
	if err := g.writer(0).Restore(t.Context(), [][]byte{elsewhere}); !errors.Is(err, ErrFateUnknown) {
		t.Errorf("something else at its place: %v", err)
	}
	nowhere := g.forget(data, func(p *prepared) { p.Places = nil })
	if err := g.writer(0).Restore(t.Context(), [][]byte{nowhere}); !errors.Is(err, ErrFateUnknown) {
		t.Errorf("no place: %v", err)
	}
	g.wantNumbers([2]int{0, 10})
}

func testSinkDeletedRecords(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	w.commitAll(data)
	w.write(10, 20)
	w.commitAll(w.prepare(2))
	var at kadm.Offsets
	at.AddOffset(g.sink.Topic, 0, 11, -1)
	_, err := g.admin().DeleteRecords(t.Context(), at)
	g.must(err)
	now := g.writer(0)
	now.restore(g.forget(data, nil))
	if n, _ := now.metrics.get("transactions_unknown"); n != 1 && g.real { // the embedded broker still shows what is below the start of its log
		t.Errorf("%v counted", n)
	}
	_, err = g.admin().DeleteTopics(t.Context(), g.sink.Topic)
	g.must(err)
	g.eventually("deleted", func() bool {
		topics, err := g.admin().ListTopics(t.Context(), g.sink.Topic)
		return err == nil && !topics.Has(g.sink.Topic)
	})
	g.sink.KeepTopic, g.sink.Topic = true, ""
	g.writer(0).restore(g.forget(data, nil))
}

func testSinkDiscardCommitted(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	w.commitAll(data)
	if err := w.Discard(t.Context(), data); err == nil {
		t.Error("discarded what was committed")
	}
	g.wantNumbers([2]int{0, 10})
}

func testSinkClose(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	w.write(0, 10)
	data := w.prepare(1)
	w.write(10, 20)
	g.must(w.Close(t.Context()))
	g.must(w.Close(t.Context()))
	if seen, open := g.visible(); !open || len(seen) > 0 {
		t.Errorf("%d records, open %t: what was prepared must stay open", len(seen), open)
	}
	g.writer(0).commitAll(data)
	g.wantNumbers([2]int{0, 10}) // and nothing else is open
}

func testSinkTooMany(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	var all [][]byte
	for i := range maxSlots {
		w.write(i, i+1)
		all = append(all, w.prepare(sdk.CheckpointID(i+1)))
	}
	if err := w.Write(t.Context(), counting(900, 901)); !errors.Is(err, ErrTooManyPrepared) || errors.Is(err, sdk.ErrFatal) {
		t.Fatalf("got %v", err)
	}
	g.must(w.Close(t.Context()))
	w = g.writer(0)
	w.commitAll(all[0])
	for _, data := range all[1:] {
		g.must(w.Discard(t.Context(), data))
	}
	w.write(1, 5)
	w.commitAll(w.prepare(99))
	g.wantNumbers([2]int{0, 5})
}

func testSinkFewIDs(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	for attempt := range 4 {
		w := g.writer(0)
		w.restore()
		for i := range 6 {
			w.write(i, i+1)
			data := w.prepare(sdk.CheckpointID(attempt*10 + i + 1))
			w.write(900, 901) // the next one is open while this one is committed
			w.commitAll(data)
			g.must(w.Discard(t.Context(), w.prepare(sdk.CheckpointID(attempt*10+i+2))))
		}
		w.kill()
	}
	ids, err := transactions{cluster{g.client(), ""}}.list(t.Context(), DefaultIDPrefix, g.job)
	if len(ids) != 3 || err != nil {
		t.Errorf("ids %q, %v", ids, err)
	}
}

func testSinkOtherJob(t *testing.T, g *target) {
	a := g.fresh(t, 1)
	b := *a
	b.job = a.job + "-1" // continues with what could be the number of a task
	wa, wb := a.writer(1), b.writer(0)
	wa.write(0, 5)
	wb.write(5, 10)
	dataA := wa.prepare(1)
	b.writer(0).restore(wb.prepare(1))
	a.writer(0).restore(dataA)
	a.wantNumbers([2]int{0, 10})
	if err := a.writer(0).Commit(t.Context(), mustPrepare(t, &b)); !errors.Is(err, ErrPrepared) || !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("another job's transaction: %v", err)
	}
}

func mustPrepare(t *testing.T, g *target) []byte {
	t.Helper()
	w := g.writer(5)
	w.write(0, 1)
	data := w.prepare(1)
	g.must(w.Discard(t.Context(), data))
	return data
}

// The hashes are those that Kafka's own tests expect of its murmur2.
func testSinkJavaPartitions(t *testing.T, g *target) {
	const partitions = 7
	g = g.fresh(t, partitions)
	w := g.writer(0)
	w.restore()
	want := map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829}
	var b sdk.Batch
	for key := range want {
		b.Append(&sdk.Record{Key: []byte(key), Partition: 3})
	}
	g.must(w.Write(t.Context(), &b))
	w.commitAll(w.prepare(1))
	for _, r := range g.committed() {
		if p := (want[string(r.Key)] & 0x7fffffff) % partitions; r.Partition != p {
			t.Errorf("key %s is in partition %d, want %d", r.Key, r.Partition, p)
		}
	}
}

func testSinkKeep(t *testing.T, g *target) {
	g = g.fresh(t, 3)
	g.sink.Partitioning = PartitionKeep
	w := g.writer(0)
	w.restore()
	var b sdk.Batch
	for p := range int32(3) {
		b.Append(&sdk.Record{Key: []byte("same"), Value: fmt.Append(nil, p), Partition: p})
	}
	g.must(w.Write(t.Context(), &b))
	w.commitAll(w.prepare(1))
	for _, r := range g.committed() {
		if string(r.Value) != fmt.Sprint(r.Partition) {
			t.Errorf("a record of partition %s is in %d", r.Value, r.Partition)
		}
	}
	b.Reset()
	b.Append(&sdk.Record{Partition: 3})
	err := w.Write(t.Context(), &b)
	if err == nil {
		_, err = w.Prepare(t.Context(), 2)
	}
	e, ok := errors.AsType[*RecordError](err)
	if !ok || e.Partition != 3 || !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}

func testSinkRefusals(t *testing.T, g *target) {
	write := func(g *target, rec sdk.Record) error {
		w := g.writer(0)
		var b sdk.Batch
		b.Append(&rec)
		if err := w.Write(t.Context(), &b); err != nil {
			return err
		}
		_, err := w.Prepare(t.Context(), 1)
		if err != nil {
			g.must(w.Close(t.Context()))
		}
		return err
	}
	t.Run("too large for the sink", func(t *testing.T) {
		g := g.fresh(t, 1)
		g.sink.BatchMaxBytes = 1 << 10
		err := write(g, sdk.Record{Value: bytes.Repeat([]byte("x"), 2<<10)})
		e, ok := errors.AsType[*RecordError](err)
		if !ok || e.Topic != g.sink.Topic || !errors.Is(err, ErrRefused) || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), "max.message.bytes") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("too large for the topic", func(t *testing.T) {
		g := g.fresh(t, 1)
		limit := "1000"
		g.sink.Topic += "-small"
		g.createTopic(g.sink.Topic, 1, map[string]*string{"max.message.bytes": &limit})
		err := write(g, sdk.Record{Value: bytes.Repeat([]byte("x"), 2<<10)})
		if !errors.Is(err, ErrRefused) || !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("got %v", err)
		}
		g.eventually("without an open transaction", func() bool { _, open := g.visible(); return !open })
	})
	t.Run("no such topic at the start", func(t *testing.T) {
		g := g.fresh(t, 1)
		g.sink.Topic = "nowhere"
		w := g.unopened(0)
		if err := w.Open(t.Context()); !errors.Is(err, ErrTopicMissing) || !strings.Contains(err.Error(), `"nowhere"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no such topic later", func(t *testing.T) {
		g := g.fresh(t, 1)
		g.sink.KeepTopic, g.sink.Topic = true, ""
		if err := write(g, sdk.Record{Topic: "nowhere"}); !errors.Is(err, ErrTopicMissing) || !strings.Contains(err.Error(), `"nowhere"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a time limit that the cluster does not allow", func(t *testing.T) {
		g := g.fresh(t, 1)
		g.sink.TransactionTimeout = 20 * time.Minute
		w := g.unopened(0)
		if err := w.Open(t.Context()); !errors.Is(err, ErrTransactionTimeout) || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), "15m0s") {
			t.Errorf("got %v", err)
		}
		s := &slot{id: slotID(DefaultIDPrefix, g.job, 0, 0)}
		defer s.drop()
		if err := w.start(t.Context(), s); !errors.Is(err, ErrTransactionTimeout) || !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("without leave to see the configuration: %v", err)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		g := g.fresh(t, 1)
		g.sink.Brokers = []string{"127.0.0.1:1"}
		if err := g.unopened(0).Open(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
}

func testSinkAtLeastOnce(t *testing.T, g *target) {
	g = g.fresh(t, 2)
	g.sink.Delivery = AtLeastOnce
	open := func() *plainWriter {
		w, err := g.sink.NewWriter(lentWriter{g.job, 0, 1, newInstruments()})
		g.must(err)
		if _, is := w.(sdk.Committer); is {
			t.Fatal("it commits")
		}
		g.must(w.Open(t.Context()))
		t.Cleanup(func() { g.must(w.Close(context.Background())) }) //nolint:usetesting // it runs when the context of the test has ended
		return w.(*plainWriter)
	}
	w := open()
	g.must(w.Write(t.Context(), counting(0, 1000)))
	g.must(w.Flush(t.Context()))
	g.wantNumbers([2]int{0, 1000})
	var large sdk.Batch
	large.Append(&sdk.Record{Value: make([]byte, 2_000_000)})
	if err := errors.Join(w.Write(t.Context(), &large), w.Flush(t.Context())); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
	g.must(w.Close(t.Context()))
	g.must(w.Close(t.Context()))
}

// The published format stays readable.
func TestPreparedGolden(t *testing.T) {
	const v1 = `{"version":1,"job":"orders","task":3,"attempt":17,"checkpoint":42,"transactional_id":"penstock-orders-3-1","producer_id":9,"producer_epoch":4,` +
		`"records":7,"began":"2026-01-02T03:04:05Z","timeout_ms":900000,"places":[{"topic":"out","partition":2,"first":10,"last":12}]}`
	s := (&Sink{}).withDefaults()
	p, err := s.decodePrepared([]byte(v1), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.encode(); err != nil || string(got) != v1 {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{
		``, `{`, `{"version":2}`, strings.Replace(v1, "orders", "other", 1), strings.Replace(v1, "penstock-orders-3-1", "penstock-other-3-1", 1),
		strings.Replace(v1, `"producer_id":9`, `"producer_id":-9`, 1), strings.Replace(v1, `"records"`, `"recrods"`, 1),
	} {
		if _, err := s.decodePrepared([]byte(bad), "orders"); !errors.Is(err, ErrPrepared) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzPrepared(f *testing.F) {
	s := (&Sink{}).withDefaults()
	f.Add([]byte(`{"version":1,"job":"j","transactional_id":"penstock-j-0-0"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := s.decodePrepared(data, "j")
		if err != nil {
			return
		}
		again, err := p.encode()
		if err != nil || !json.Valid(again) {
			t.Errorf("%s: %v", again, err)
		}
	})
}

func TestSlotIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"penstock-a-0-0": true, "penstock-a-12-3": true, "penstock-a-1": false, "penstock-a-1-2-3": false, "penstock-a-01-2": false,
		"penstock-a--1-2": false, "penstock-a-1-": false, "penstock-ab-1-2": false, "x-a-1-2": false, "penstock-a-1-99999999999": false,
	} {
		if isSlotID(id, "penstock", "a") != want {
			t.Errorf("%s: not %t", id, want)
		}
	}
	if id := slotID("penstock", "a-1", 2, 3); isSlotID(id, "penstock", "a") || !isSlotID(id, "penstock", "a-1") {
		t.Errorf("%s belongs to the wrong job", id)
	}
}

func TestSinkValidation(t *testing.T) {
	good := Sink{Brokers: []string{"localhost:9092"}, Topic: "t"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Sink){
		"brokers":              func(s *Sink) { s.Brokers = nil },
		"topic":                func(s *Sink) { s.Topic = "" },
		"keep_topic":           func(s *Sink) { s.KeepTopic = true },
		"delivery":             func(s *Sink) { s.Delivery = "maybe" },
		"partitioning":         func(s *Sink) { s.Partitioning = "random" },
		"compression":          func(s *Sink) { s.Compression = "rar" },
		"on_older":             func(s *Sink) { s.OnOlder = "shrug" },
		"on_lost":              func(s *Sink) { s.OnLost = "shrug" },
		"linger":               func(s *Sink) { s.Linger = time.Hour },
		"transaction_timeout":  func(s *Sink) { s.TransactionTimeout = time.Millisecond },
		"batch_max_bytes":      func(s *Sink) { s.BatchMaxBytes = 1 },
		"max_buffered_records": func(s *Sink) { s.MaxBufferedRecords = -1 },
		"max_buffered_bytes":   func(s *Sink) { s.MaxBufferedBytes = 1 },
		"tls":                  func(s *Sink) { s.TLS = &TLS{CertFile: "x"} },
	} {
		s := good
		change(&s)
		_, err := s.NewWriter(lentWriter{"job", 0, 1, newInstruments()})
		if err == nil || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := good.NewWriter(lentWriter{"a job", 0, 1, newInstruments()}); !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("a job name with a space: %v", err)
	}
}

// An outage holds the writer up, and its context ends the wait.
func TestSinkWaitsForTheCluster(t *testing.T) {
	b := kafkatest.Start(t, kafkatest.Options{})
	arrived := make(chan struct{}, 1)
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		select {
		case arrived <- struct{}{}:
		default:
		}
		return nil, errors.New("down"), true
	})
	for _, delivery := range []Delivery{ExactlyOnce, AtLeastOnce} {
		t.Run(string(delivery), func(t *testing.T) {
			g := (&target{addrs: b.Addrs()}).fresh(t, 1)
			g.sink.Delivery, g.sink.MaxBufferedRecords = delivery, 1
			w, err := g.sink.NewWriter(lentWriter{g.job, 0, 1, newInstruments()})
			g.must(err)
			g.must(w.Open(t.Context()))
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-arrived
				<-arrived // the second is of this writer for sure
				cancel(sdk.ErrClosed)
			}()
			if err := w.Write(ctx, counting(0, 3)); !errors.Is(err, sdk.ErrClosed) {
				t.Errorf("got %v", err)
			}
			done, end := context.WithCancel(t.Context())
			end()
			_ = w.Close(done)
		})
	}
}

// The protocol before KIP-890 part 2, in which the end of a transaction leaves the producer's epoch as it is.
func TestSinkOnTransactionsOfLevelOne(t *testing.T) {
	const level = 1
	s := kafkaserver.Start(t, kafkaserver.Options{})
	if !s.Owned() {
		t.Skip("SKIPPED: the test lowers the transaction.version of a server of its own")
	}
	g := &target{t: t, addrs: s.Addrs(), real: true}
	features := kmsg.NewPtrUpdateFeaturesRequest()
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = transactionFeature, level, 2 // a downgrade
	features.FeatureUpdates = append(features.FeatureUpdates, update)
	resp, err := features.RequestWith(t.Context(), g.client())
	g.must(err)
	g.must(kerr.ErrorForCode(resp.ErrorCode))
	g.eventually("lowered", func() bool {
		versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), g.client())
		g.must(err)
		for _, f := range versions.FinalizedFeatures {
			if f.Name == transactionFeature && f.MaxVersionLevel > level {
				return false
			}
		}
		return true
	})
	runSinkScenarios(t, g)
	t.Run("a restore of an older checkpoint repeats nothing unasked", func(t *testing.T) { testSinkOlder(t, g) })
}

func TestSinkErrorsOfALoginWithoutRights(t *testing.T) {
	s := kafkaserver.Start(t, kafkaserver.Options{ACLs: true, Users: map[string]string{"alice": "secret"}})
	g := (&target{t: t, addrs: s.Addrs(), real: true}).fresh(t, 1)
	g.sink.Brokers = s.ListenerAddrs(kafkaserver.SASLPlaintext)
	g.sink.SASL = &SASL{Mechanism: Plain, User: "alice", Password: "secret"}
	admin := g.admin()
	allow := func(b *kadm.ACLBuilder) {
		t.Helper()
		results, err := admin.CreateACLs(t.Context(), b.Allow("User:alice").AllowHosts("*").ResourcePatternType(kadm.ACLPatternPrefixed))
		g.must(err)
		for _, r := range results {
			g.must(r.Err)
		}
	}
	denied := func(what string, is error, try func() error) {
		t.Helper()
		if err := try(); !errors.Is(err, is) || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
	open := func() error { return g.unopened(0).Open(t.Context()) }
	denied("grant it WRITE and DESCRIBE on the topic", ErrLogin, open)
	allow(kadm.NewACLs().Topics(g.sink.Topic).Operations(kadm.OpDescribe))
	g.eventually("allowed to describe", func() bool { return open() == nil })
	w := g.writer(0)
	write := func() error {
		w := g.writer(0)
		if err := w.Write(t.Context(), counting(0, 1)); err != nil {
			return err
		}
		_, err := w.Prepare(t.Context(), 1)
		return err
	}
	denied("transactional_id_prefix", ErrLogin, write)
	p := prepared{Job: g.job, ID: slotID(DefaultIDPrefix, g.job, 0, 0), ProducerID: 1}
	data, err := p.encode()
	g.must(err)
	denied("transactional_id_prefix", ErrLogin, func() error { return w.Commit(t.Context(), data) })
	allow(kadm.NewACLs().TransactionalIDs(DefaultIDPrefix+"-"+g.job).Operations(kadm.OpWrite, kadm.OpDescribe))
	g.eventually("allowed to use the id", func() bool { return !strings.Contains(fmt.Sprint(write()), "transactional_id_prefix") })
	denied("grant it WRITE and DESCRIBE on the topic", ErrLogin, write)
	allow(kadm.NewACLs().Topics(g.sink.Topic).Operations(kadm.OpWrite))
	g.eventually("allowed to write", func() bool { return write() == nil })
	g.writer(0).restore()
}
