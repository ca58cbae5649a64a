package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
	"a commit is one whatever the client knows":                      testSinkForgetfulClient,
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
				g.must(a.abort(t.Context(), a.current)) // not the next checkpoint's after all
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

// The client aborts a transaction instead of committing it, and says nothing, when it has not noted the partitions that it wrote to: see
// known. Here it is made to forget them, which comes to the same.
func testSinkForgetfulClient(t *testing.T, g *target) {
	g = g.fresh(t, 1)
	w := g.writer(0)
	w.restore()
	for id := range 4 { // ids are used again
		w.write(id*10, id*10+10)
		data := w.prepare(sdk.CheckpointID(id + 1))
		for _, open := range w.open {
			open.slot.client.PurgeTopicsFromProducing(g.sink.Topic)
		}
		w.commitAll(data)
	}
	g.wantNumbers([2]int{0, 40})
	w.write(1000, 1010)
	g.must(w.Flush(t.Context()))
	w.current.slot.client.PurgeTopicsFromProducing(g.sink.Topic)
	g.must(w.Close(t.Context()))
	g.wantNumbers([2]int{0, 40}) // and nothing is open
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
