package file

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
)

type writerContext struct {
	job      string
	task     int
	attempt  int64
	restored sdk.CheckpointID
}

// newest is the restored checkpoint of runs that go on from the newest one, whichever it is.
const newest sdk.CheckpointID = math.MaxInt64

func (c writerContext) Restored() sdk.CheckpointID { return c.restored }

func (c writerContext) Job() string { return c.job }

func (c writerContext) Task() int { return c.task }

func (c writerContext) Parallelism() int { return 4 }

func (c writerContext) Attempt() int64 { return c.attempt }

func (c writerContext) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (c writerContext) Metrics() sdk.Metrics { return sdk.DiscardMetrics }

// rig drives writers over one real directory.
type rig struct {
	t    *testing.T
	sink Sink
	now  time.Time
	// restored is given to the writers made from now on.
	restored sdk.CheckpointID
	// fault, when set, is asked before each step on the directory.
	fault func(op, name string) error
	// unsynced leaves out the real syncs, which a test without a power cut cannot see, and which take most of its time.
	unsynced bool
}

func newRig(t *testing.T) *rig {
	return &rig{t: t, sink: Sink{Path: filepath.Join(t.TempDir(), "out")}, now: time.Unix(1_700_000_000, 0), restored: newest}
}

func (r *rig) writer(task int, attempt int64) *writer {
	r.t.Helper()
	w := newWriter(r.sink.withDefaults(), writerContext{"orders", task, attempt, r.restored}, func(path string) (folder, error) {
		f, err := openRoot(path)
		return faultyFolder{f, r}, err
	}, func() time.Time { return r.now })
	must(r.t, w.Open(r.t.Context()))
	return w
}

// faultyFolder is the real directory behind a gate.
type faultyFolder struct {
	folder
	rig *rig
}

func (f faultyFolder) gate(op, name string) error {
	if f.rig.fault == nil {
		return nil
	}
	return f.rig.fault(op, name)
}

func (f faultyFolder) Create(name string) (handle, error) {
	if err := f.gate("create", name); err != nil {
		return nil, err
	}
	h, err := f.folder.Create(name)
	return faultyHandle{h, f, name}, err
}

func (f faultyFolder) Rename(from, to string) error {
	if err := f.gate("rename", from); err != nil {
		return err
	}
	return f.folder.Rename(from, to)
}

func (f faultyFolder) Remove(name string) error {
	if err := f.gate("remove", name); err != nil {
		return err
	}
	return f.folder.Remove(name)
}

func (f faultyFolder) Sync() error {
	if err := f.gate("syncdir", ""); err != nil {
		return err
	}
	if f.rig.unsynced {
		return nil
	}
	return f.folder.Sync()
}

type faultyHandle struct {
	handle
	folder faultyFolder
	name   string
}

// Write is short when it fails, as on a full disk.
func (h faultyHandle) Write(b []byte) (int, error) {
	if err := h.folder.gate("write", h.name); err != nil {
		n, _ := h.handle.Write(b[:len(b)/2])
		return n, err
	}
	return h.handle.Write(b)
}

func (h faultyHandle) Sync() error {
	if err := h.folder.gate("sync", h.name); err != nil {
		return err
	}
	if h.folder.rig.unsynced {
		return nil
	}
	return h.handle.Sync()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batch holds the records from..to-1 of partition 0.
func batch(from, to int) *sdk.Batch {
	var b sdk.Batch
	for i := from; i < to; i++ {
		b.Append(&sdk.Record{Topic: "t", Offset: int64(i), Epoch: -1, Value: fmt.Appendf(nil, "value %d", i)})
	}
	return &b
}

func (r *rig) prepare(w *writer, id sdk.CheckpointID) []byte {
	r.t.Helper()
	data, err := w.Prepare(r.t.Context(), id)
	must(r.t, err)
	return data
}

// names lists visible files, or hidden ones.
func (r *rig) names(hidden bool) []string {
	entries, err := os.ReadDir(r.sink.Path)
	must(r.t, err)
	var names []string
	for _, e := range entries {
		if e.Name() == lockName("orders") {
			continue // it is left behind, see held
		}
		if strings.HasPrefix(e.Name(), ".") == hidden {
			names = append(names, e.Name())
		}
	}
	return names
}

// parts lists hidden data files.
func (r *rig) parts() []string {
	return slices.DeleteFunc(r.names(true), func(n string) bool { return !isPart(n, "orders") })
}

// offsets reads every visible file of the job.
func (r *rig) offsets() []int64 {
	r.t.Helper()
	var all []int64
	for _, name := range r.names(false) {
		if !strings.HasPrefix(name, "orders-0") {
			continue
		}
		f, err := os.Open(filepath.Join(r.sink.Path, name))
		must(r.t, err)
		var in io.Reader = f
		switch filepath.Ext(name) {
		case ".gz":
			in, err = gzip.NewReader(f)
			must(r.t, err)
		case ".zst":
			dec, err := zstd.NewReader(f)
			must(r.t, err)
			defer dec.Close()
			in = dec
		}
		data, err := io.ReadAll(in)
		must(r.t, err)
		must(r.t, f.Close())
		for line := range bytes.Lines(data) {
			rec, err := jsonl.Decode(line)
			must(r.t, err)
			all = append(all, rec.Offset)
		}
	}
	slices.Sort(all)
	return all
}

func (r *rig) wantOffsets(n int) {
	r.t.Helper()
	got := r.offsets()
	want := make([]int64, n)
	for i := range want {
		want[i] = int64(i)
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("visible records are %v, want 0..%d", got, n-1)
	}
}
