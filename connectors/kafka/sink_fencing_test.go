package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/penstock-dev/penstock/sdk"
)

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
