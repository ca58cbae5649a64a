package file

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func TestVisibleOnlyOnceCommitted(t *testing.T) {
	for _, c := range []Compression{None, Gzip, Zstd} {
		t.Run(string(c), func(t *testing.T) {
			r := newRig(t)
			r.sink.Compression = c
			w := r.writer(3, 1)
			must(t, w.Restore(t.Context(), nil))
			must(t, w.Write(t.Context(), batch(0, 5000)))
			r.wantOffsets(0)
			data := r.prepare(w, 42)
			r.wantOffsets(0)
			must(t, w.Write(t.Context(), batch(5000, 6000)))
			must(t, w.Commit(t.Context(), data))
			r.wantOffsets(5000)
			if got, want := r.names(false), []string{"orders-00000042-t003-0000" + r.sink.extension0()}; !slices.Equal(got, want) {
				t.Errorf("files %q, want %q", got, want)
			}
			must(t, w.Commit(t.Context(), data)) // again
			must(t, w.Commit(t.Context(), r.prepare(w, 43)))
			r.wantOffsets(6000)
			must(t, w.Close(t.Context()))
			must(t, w.Close(t.Context()))
		})
	}
}

func (s Sink) extension0() string { return s.withDefaults().extension() }

func TestNothingWrittenNothingPrepared(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	if data := r.prepare(w, 1); data != nil {
		t.Errorf("prepared %q", data)
	}
	must(t, w.Close(t.Context()))
	if names := append(r.names(true), r.names(false)...); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

func TestCloseDiscards(t *testing.T) {
	r := newRig(t)
	r.sink.RollBytes = 1000
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 10)))
	data := r.prepare(w, 1)
	kept := r.parts()
	must(t, w.Write(t.Context(), batch(10, 100)))
	must(t, w.Close(t.Context()))
	if got := r.parts(); len(kept) == 0 || !slices.Equal(got, kept) {
		t.Errorf("left %q, want the prepared %q", got, kept)
	}
	w = r.writer(0, 2)
	must(t, w.Restore(t.Context(), [][]byte{data}))
	r.wantOffsets(10)
}

func TestRaw(t *testing.T) {
	r := newRig(t)
	r.sink.Format, r.sink.Separator = Raw, "|"
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 2)))
	must(t, w.Commit(t.Context(), r.prepare(w, 1)))
	got, err := os.ReadFile(filepath.Join(r.sink.Path, "orders-00000001-t000-0000.txt"))
	must(t, err)
	if string(got) != "value 0|value 1|" {
		t.Errorf("got %q", got)
	}
}

func TestRolling(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		r := newRig(t)
		r.sink.RollBytes = 400
		w := r.writer(0, 1)
		must(t, w.Write(t.Context(), batch(0, 40)))
		must(t, w.Commit(t.Context(), r.prepare(w, 1)))
		r.wantOffsets(40)
		names := r.names(false)
		if len(names) < 5 {
			t.Fatalf("files %q", names)
		}
		for _, n := range names {
			info, err := os.Stat(filepath.Join(r.sink.Path, n))
			must(t, err)
			if info.Size() > 400+120 {
				t.Errorf("%s has %d bytes", n, info.Size())
			}
		}
	})
	t.Run("time", func(t *testing.T) {
		r := newRig(t)
		r.sink.RollInterval = time.Minute
		w := r.writer(0, 1)
		for i := range 4 {
			must(t, w.Write(t.Context(), batch(i, i+1)))
			r.now = r.now.Add(30 * time.Second)
		}
		must(t, w.Commit(t.Context(), r.prepare(w, 1)))
		r.wantOffsets(4)
		if names := r.names(false); len(names) != 2 {
			t.Errorf("files %q, want 2", names)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		r := newRig(t)
		w := r.writer(0, 1)
		w.ended = make([]string, maxFiles-1)
		w.sink.RollBytes = 1
		must(t, w.write(batch(0, 3)))
		if w.part == nil || len(w.ended) != maxFiles-1 {
			t.Errorf("%d files ended", len(w.ended))
		}
	})
}

func TestRestoreLeavesForeignFilesAlone(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 3)))
	must(t, w.drain())
	foreign := []string{
		".hidden", "data.jsonl", ".penstock-other-t000-a1-0000.part", ".penstock-orders-x-t000-a1-0000.part",
		".penstock-orders-t000-a1-0000.part.bak", ".penstock-other-t000.note.new", "orders-00000001-t009-0000.csv",
	}
	for _, n := range foreign {
		must(t, os.WriteFile(filepath.Join(r.sink.Path, n), nil, 0o644))
	}
	next := r.writer(1, 2)
	must(t, next.Restore(t.Context(), nil))
	left := append(r.names(true), r.names(false)...)
	slices.Sort(left)
	slices.Sort(foreign)
	if !slices.Equal(left, foreign) {
		t.Errorf("left %q, want %q", left, foreign)
	}
}

// A consumer may take a file away as soon as it is visible, also before the commit has ended; a restore must then neither
// fail nor bring it back.
func TestConsumerTakesFilesAtOnce(t *testing.T) {
	r := newRig(t)
	r.sink.RollBytes = 300
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 10)))
	data := r.prepare(w, 1)
	total := len(r.parts())
	taken := 0
	take := func() {
		for _, n := range r.names(false) {
			must(t, os.Remove(filepath.Join(r.sink.Path, n)))
			taken++
		}
	}
	crash := errors.New("crash")
	renames := 0
	r.fault = func(op, name string) error {
		take()
		if op == "rename" && isPart(name, "orders") {
			if renames++; renames == 3 {
				return crash
			}
		}
		return nil
	}
	if err := w.Commit(t.Context(), data); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	r.fault = nil
	take()
	if taken != 2 {
		t.Fatalf("%d files taken", taken)
	}
	for attempt := int64(2); attempt < 5; attempt++ {
		must(t, r.writer(0, attempt).Restore(t.Context(), [][]byte{data}))
		take()
	}
	if taken != total {
		t.Errorf("consumer got %d files, want each of %d once", taken, total)
	}
}

// Without a note the commit never began, so a missing file is lost data.
func TestLostDataIsNamed(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 10)))
	data := r.prepare(w, 7)
	part := filepath.Join(r.sink.Path, r.parts()[0])
	content, err := os.ReadFile(part)
	must(t, err)

	must(t, os.Remove(part))
	err = r.writer(0, 2).Restore(t.Context(), [][]byte{data})
	if !errors.Is(err, ErrDataMissing) || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v", err)
	}
	must(t, os.WriteFile(part, content[:len(content)-1], 0o644))
	if err := r.writer(0, 2).Restore(t.Context(), [][]byte{data}); !errors.Is(err, ErrDataChanged) {
		t.Errorf("got %v", err)
	}
	must(t, os.WriteFile(part, content, 0o644))
	must(t, r.writer(0, 2).Restore(t.Context(), [][]byte{data}))
	r.wantOffsets(10)
}

func TestRestoreBehindABegunCommit(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 5)))
	first := r.prepare(w, 1)
	must(t, w.Commit(t.Context(), first))
	w = r.writer(0, 2)
	must(t, w.Restore(t.Context(), [][]byte{first}))
	must(t, w.Write(t.Context(), batch(5, 10)))
	second := r.prepare(w, 2)
	crash := errors.New("crash")
	r.fault = func(op, name string) error {
		if op == "rename" && isPart(name, "orders") {
			return crash
		}
		return nil
	}
	if err := w.Commit(t.Context(), second); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	r.fault = nil

	must(t, r.writer(0, 3).Restore(t.Context(), [][]byte{first})) // goes back: the files of the second are swept
	r.wantOffsets(5)
	if err := r.writer(0, 4).Restore(t.Context(), [][]byte{second}); !errors.Is(err, ErrDataMissing) {
		t.Errorf("swept data passed as committed: %v", err)
	}
	for _, n := range r.names(false) {
		must(t, os.Remove(filepath.Join(r.sink.Path, n)))
	}
	must(t, r.writer(0, 5).Restore(t.Context(), [][]byte{first})) // consumed, and known to be committed
}

// The state directory was removed while the output stayed: writing it all again is refused.
func TestOutputOfAnotherRun(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 5)
	must(t, w.Write(t.Context(), batch(0, 5)))
	must(t, w.Commit(t.Context(), r.prepare(w, 3)))
	err := r.writer(1, 2).Restore(t.Context(), nil)
	if !errors.Is(err, ErrOtherRun) || !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("got %v", err)
	}
	must(t, r.writer(1, 6).Restore(t.Context(), nil))
}

// The state is older than the output, by a removed checkpoint, an explicit restore or a new beginning: what lies between
// would be written twice, and is refused unless that was asked for.
func TestARunFromBehindTheOutputIsRefused(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 5)
	must(t, w.Write(t.Context(), batch(0, 5)))
	must(t, w.Commit(t.Context(), r.prepare(w, 3)))
	attempt := int64(5)
	for restored, want := range map[sdk.CheckpointID]error{0: ErrOtherRun, 2: ErrOtherRun, 3: nil, 4: nil} {
		attempt++
		r.restored, r.sink.Repeat = restored, false
		if err := r.writer(1, attempt).Restore(t.Context(), nil); !errors.Is(err, want) {
			t.Errorf("restored from %d: %v", restored, err)
		}
		r.sink.Repeat = true
		must(t, r.writer(1, attempt).Restore(t.Context(), nil))
	}
}

// The notes of commits look disposable beside the files. Without them a repeated commit knows its files by name and size.
func TestARepeatedCommitWithoutItsNoteFindsItsFiles(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 5)
	must(t, w.Write(t.Context(), batch(0, 5)))
	data := r.prepare(w, 3)
	must(t, w.Commit(t.Context(), data))
	must(t, os.Remove(filepath.Join(r.sink.Path, noteName("orders", 0))))
	must(t, r.writer(0, 6).Restore(t.Context(), [][]byte{data}))
	r.wantOffsets(5)
}

func TestFinalNameTaken(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	taken := filepath.Join(r.sink.Path, "orders-00000003-t000-0000.jsonl")
	must(t, os.WriteFile(taken, []byte("precious"), 0o644))
	must(t, w.Write(t.Context(), batch(0, 5)))
	if _, err := w.Prepare(t.Context(), 3); !errors.Is(err, ErrExists) || !errors.Is(err, sdk.ErrFatal) {
		t.Fatalf("got %v", err)
	}
	must(t, os.Remove(taken))
	data := r.prepare(w, 3)
	must(t, os.WriteFile(taken, []byte("precious"), 0o644))
	if err := w.Commit(t.Context(), data); !errors.Is(err, ErrExists) {
		t.Fatalf("got %v", err)
	}
	if got, _ := os.ReadFile(taken); string(got) != "precious" {
		t.Error("overwritten")
	}
}

func TestDiscard(t *testing.T) {
	r := newRig(t)
	w := r.writer(0, 1)
	must(t, w.Write(t.Context(), batch(0, 5)))
	data := r.prepare(w, 1)
	must(t, w.Discard(t.Context(), data))
	must(t, w.Discard(t.Context(), data))
	if p := r.parts(); len(p) > 0 {
		t.Errorf("left %q", p)
	}
	must(t, w.Write(t.Context(), batch(0, 5)))
	data = r.prepare(w, 2)
	must(t, w.Commit(t.Context(), data))
	if err := w.Discard(t.Context(), data); err == nil {
		t.Error("discarded what was committed")
	}
}

func TestUnusableDirectories(t *testing.T) {
	t.Run("a file in the way", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, nil, 0o644))
		for _, p := range []string{path, filepath.Join(path, "below")} {
			w, err := Sink{Path: p}.NewWriter(writerContext{"orders", 0, 1, newest})
			must(t, err)
			err = w.Open(t.Context())
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Path != p || e.Remedy == "" || !errors.Is(err, syscall.ENOTDIR) || !errors.Is(err, sdk.ErrFatal) {
				t.Errorf("got %v", err)
			}
			must(t, w.Close(t.Context()))
		}
	})
	t.Run("not writable", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write everywhere")
		}
		path := t.TempDir()
		must(t, os.Chmod(path, 0o500))
		w, err := Sink{Path: path}.NewWriter(writerContext{"orders", 0, 1, newest})
		must(t, err)
		must(t, w.Open(t.Context()))
		if err := w.Write(t.Context(), batch(0, 1)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	for _, job := range []string{"orders", "a-t001-a2-0003.part", "x-t000.note", "ü b"} {
		part := partName(job, 1234, 99, 12345)
		if !isPart(part, job) || isPart(part, job+"x") || isPart(part, "a") {
			t.Errorf("%q is not taken apart", part)
		}
		if task, unfinished, ok := noteTask(noteName(job, 7)+newSuffix, job); task != 7 || !unfinished || !ok {
			t.Errorf("note of %q: %d %t %t", job, task, unfinished, ok)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, s := range []Sink{{}, {Path: "x", Format: "csv"}, {Path: "x", Compression: "lz4"}, {Path: "x", RollBytes: -1}, {Path: "x", RollInterval: -1}} {
		if _, err := s.NewWriter(writerContext{"orders", 0, 1, newest}); !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, job := range []string{"", ".x", "a/b", "a\nb", strings.Repeat("x", 151)} {
		if _, err := (Sink{Path: "x"}).NewWriter(writerContext{job, 0, 1, newest}); !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("job %q: %v", job, err)
		}
	}
}

func TestCancelledWrite(t *testing.T) {
	w := newRig(t).writer(0, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(sdk.ErrClosed)
	if err := w.Write(ctx, batch(0, 1)); !errors.Is(err, sdk.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	w, err := Sink{Path: b.TempDir()}.NewWriter(writerContext{"bench", 0, 1, newest})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	var recs sdk.Batch
	for i := range 64 {
		recs.Append(&sdk.Record{Topic: "t", Offset: int64(i), Time: time.Unix(1_700_000_000, 0), Value: bytes.Repeat([]byte("x"), 100)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(b.Context(), &recs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/record")
	if err := w.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
