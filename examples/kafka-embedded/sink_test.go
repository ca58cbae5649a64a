package main

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// lent is what an engine would lend to a writer.
type lent struct {
	task     int
	restored sdk.CheckpointID
}

func (l lent) Job() string                { return "takings" }
func (l lent) Task() int                  { return l.task }
func (l lent) Parallelism() int           { return 2 }
func (l lent) Attempt() int64             { return 1 }
func (l lent) Restored() sdk.CheckpointID { return l.restored }
func (l lent) Logger() *slog.Logger       { return slog.New(slog.DiscardHandler) }
func (l lent) Metrics() sdk.Metrics       { return sdk.DiscardMetrics }

func bookkeeper(t *testing.T, l *ledger, ctx lent) *writer {
	t.Helper()
	w, err := (&sink{ledger: l}).NewWriter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return w.(*writer)
}

func prepare(t *testing.T, w *writer, checkpoint sdk.CheckpointID, values ...string) []byte {
	t.Helper()
	var batch sdk.Batch
	for _, v := range values {
		batch.Append(&sdk.Record{Value: []byte(v)})
	}
	if err := w.Write(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	prepared, err := w.Prepare(t.Context(), checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

func emptyLedger(t *testing.T) *ledger {
	t.Helper()
	l, err := openLedger(filepath.Join(t.TempDir(), "takings.json"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The bytes are in checkpoints that people keep: a later version of the program has to read these.
func TestWhatIsPrepared(t *testing.T) {
	t.Parallel()
	w := bookkeeper(t, emptyLedger(t), lent{task: 1})
	got := prepare(t, w, 7, `{"driver":"d1","fare":12.45}`, `{"driver":"d1","fare":1}`, `{"driver":"d2","fare":0.29}`, `{"driver":"d2","fare":-1}`, `no JSON`)
	const want = `{"version":1,"task":1,"checkpoint":7,"unreadable":2,"drivers":{"d1":{"rides":2,"cents":1345},"d2":{"rides":1,"cents":29}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if more := prepare(t, w, 8); more != nil {
		t.Errorf("nothing was written, and %s prepared", more)
	}
	if _, err := decodeSums([]byte(`{"version":2}`)); err == nil {
		t.Error("a version of the future was read")
	}
}

// What crashes bring about: the same commit twice, by the same writer and by one of another process.
func TestCommitComesAgain(t *testing.T) {
	t.Parallel()
	l := emptyLedger(t)
	w := bookkeeper(t, l, lent{})
	first, second := prepare(t, w, 1, `{"driver":"d1","fare":2}`), prepare(t, w, 2, `{"driver":"d1","fare":3}`)
	other := prepare(t, bookkeeper(t, l, lent{task: 1}), 2, `{"driver":"d1","fare":5}`)
	for _, prepared := range [][]byte{first, first, second} {
		if err := w.Commit(t.Context(), prepared); err != nil {
			t.Fatal(err)
		}
	}
	again, err := openLedger(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := bookkeeper(t, again, lent{task: 3, restored: 2}).Restore(t.Context(), [][]byte{first, second, other}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]takings{"d1": {Rides: 3, Cents: 1000}}; !maps.Equal(again.book.Drivers, want) {
		t.Errorf("got %v, want %v", again.book.Drivers, want)
	}
}

// A write that fails changes nothing; the engine tries again.
func TestLedgerThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	l := emptyLedger(t)
	w := bookkeeper(t, l, lent{})
	prepared := prepare(t, w, 1, `{"driver":"d1","fare":2}`)
	if err := os.Mkdir(l.path+".new", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context(), prepared); err == nil || errors.Is(err, sdk.ErrFatal) {
		t.Fatalf("error %v, want one that is tried again", err)
	}
	if err := os.Remove(l.path + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context(), prepared); err != nil {
		t.Fatal(err)
	}
	if got := l.book.Drivers["d1"]; got != (takings{Rides: 1, Cents: 200}) {
		t.Errorf("got %+v", got)
	}
}

func TestStateAndLedgerOfDifferentTimes(t *testing.T) {
	t.Parallel()
	l := emptyLedger(t)
	w := bookkeeper(t, l, lent{})
	if err := w.Commit(t.Context(), prepare(t, w, 5, `{"driver":"d1","fare":2}`)); err != nil {
		t.Fatal(err)
	}
	for restored, refused := range map[sdk.CheckpointID]bool{0: true, 4: true, 5: false, 6: false} {
		if err := bookkeeper(t, l, lent{restored: restored}).Restore(t.Context(), nil); errors.Is(err, sdk.ErrFatal) != refused {
			t.Errorf("restored from %d: %v", restored, err)
		}
	}
}

func TestDamagedLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "takings.json")
	for _, content := range []string{``, `{`, `{}`, `{"version":1}`, `{"version":2,"applied":{},"drivers":{}}`} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := openLedger(path); err == nil {
			t.Errorf("%q was opened", content)
		}
	}
}
