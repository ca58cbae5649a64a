package checkpoint_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// manifest is a small checkpoint of job orders.
func manifest(id sdk.CheckpointID, kind protocol.CheckpointKind) *protocol.Manifest {
	at := time.Date(2026, 1, 2, 3, 4, int(id%60), 0, time.UTC)
	return &protocol.Manifest{
		Job: "orders", ID: id, Kind: kind, Triggered: at, Completed: at.Add(time.Second), Parallelism: 1, Lane: protocol.LaneA,
		Connector: "fake", Sink: "blackhole", LastAttempt: protocol.Attempt(id),
		Coordinator: protocol.CoordinatorState{Epoch: 1, Enumerator: sdk.VersionedBytes{Version: 1, Data: []byte("e")}},
		Readers: []protocol.ReaderState{{
			Splits:   []protocol.Split{{ID: "s-0", Data: sdk.VersionedBytes{Version: 1, Data: fmt.Append(nil, id)}}},
			Metadata: protocol.Metadata{MetadataVersion: 1, CommandProtocolVersion: 1, ManagedLaneVersion: 1},
		}},
	}
}

func open(t *testing.T, dir checkpoint.Dir) *checkpoint.FileStore {
	t.Helper()
	s, err := checkpoint.OpenDir(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func write(t *testing.T, s checkpoint.Storage, id sdk.CheckpointID, kind protocol.CheckpointKind) checkpoint.Info {
	t.Helper()
	info, err := s.Write(t.Context(), manifest(id, kind))
	if err != nil {
		t.Fatalf("write %d: %v", id, err)
	}
	return info
}

// TestStorageContract is what an engine relies on, of every storage.
func TestStorageContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) checkpoint.Storage{
		"memory": func(*testing.T) checkpoint.Storage { return checkpoint.NewMemory() },
		"disk":   func(t *testing.T) checkpoint.Storage { return open(t, checkpointtest.NewDisk()) },
		"directory": func(t *testing.T) checkpoint.Storage {
			s, err := checkpoint.Open(t.Context(), filepath.Join(t.TempDir(), "a", "b"), checkpoint.FileOptions{Job: "orders"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, open(t))
		})
	}
}

func contract(t *testing.T, s checkpoint.Storage) {
	ctx := t.Context()
	if _, _, err := s.Latest(ctx); !errors.Is(err, checkpoint.ErrNoCheckpoint) {
		t.Errorf("latest of an empty store: %v", err)
	}
	if _, _, err := s.Read(ctx, 3); !errors.Is(err, checkpoint.ErrNoCheckpoint) {
		t.Errorf("read of an empty store: %v", err)
	}
	first, err := s.ReserveCheckpoints(ctx, 2)
	if err != nil || first != 1 {
		t.Errorf("first checkpoint number %d, %v", first, err)
	}
	attempt, err := s.ReserveAttempts(ctx, 5)
	if err != nil || attempt != 1 {
		t.Errorf("first attempt %d, %v", attempt, err)
	}
	info := write(t, s, 1, protocol.Periodic)
	if info.ID != 1 || info.Size == 0 || info.State != checkpoint.Usable || info.Savepoint {
		t.Errorf("written: %+v", info)
	}
	write(t, s, 2, protocol.Savepoint)
	m, info, err := s.Latest(ctx)
	if err != nil || info.ID != 2 || !info.Savepoint || !reflect.DeepEqual(m, manifest(2, protocol.Savepoint)) {
		t.Errorf("latest: %+v, %+v, %v", m, info, err)
	}
	if m, _, err := s.Read(ctx, 1); err != nil || m.ID != 1 {
		t.Errorf("read 1: %v, %v", m, err)
	}
	for _, id := range []sdk.CheckpointID{2, 1} {
		if _, err := s.Write(ctx, manifest(id, protocol.Periodic)); err == nil {
			t.Errorf("checkpoint %d was written after 2", id)
		}
	}
	if _, err := s.Write(ctx, &protocol.Manifest{ID: 3}); err == nil {
		t.Error("a manifest that cannot be read back was written")
	}
	if err := s.Raise(ctx, 40, 70); err != nil {
		t.Fatal(err)
	}
	if id, err := s.ReserveCheckpoints(ctx, 1); err != nil || id != 41 {
		t.Errorf("after raising to 40: %d, %v", id, err)
	}
	if a, err := s.ReserveAttempts(ctx, 1); err != nil || a != 71 {
		t.Errorf("after raising to 70: %d, %v", a, err)
	}
	for _, n := range []int{0, -1, 1 << 30} {
		if _, err := s.ReserveAttempts(ctx, n); err == nil {
			t.Errorf("%d attempts were reserved", n)
		}
		if _, err := s.ReserveCheckpoints(ctx, n); err == nil {
			t.Errorf("%d checkpoints were reserved", n)
		}
	}
	if err := s.Prune(ctx, 0); err == nil {
		t.Error("pruned down to nothing")
	}
	ended, cancel := context.WithCancelCause(ctx)
	cause := errors.New("job is over")
	cancel(cause)
	if _, err := s.Write(ended, manifest(50, protocol.Periodic)); !errors.Is(err, cause) {
		t.Errorf("write after the end: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := s.Write(ctx, manifest(60, protocol.Periodic)); !errors.Is(err, checkpoint.ErrStoreClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, _, err := s.Latest(ctx); !errors.Is(err, checkpoint.ErrStoreClosed) {
		t.Errorf("latest after close: %v", err)
	}
	if _, err := s.ReserveAttempts(ctx, 1); !errors.Is(err, checkpoint.ErrStoreClosed) {
		t.Errorf("reserve after close: %v", err)
	}
}

// TestOrderOfOperations pins the order that durability depends on.
func TestOrderOfOperations(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	s := open(t, disk)
	expectLog(t, disk, "lock lock", "syncdir", "list", "read counters",
		"create .counters.tmp", "write .counters.tmp", "sync .counters.tmp", "close .counters.tmp", "rename .counters.tmp counters", "syncdir")
	if _, err := s.ReserveCheckpoints(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	expectLog(t, disk,
		"create .counters.tmp", "write .counters.tmp", "sync .counters.tmp", "close .counters.tmp", "rename .counters.tmp counters", "syncdir")
	if _, err := s.ReserveCheckpoints(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	expectLog(t, disk) // still within the block
	write(t, s, 1, protocol.Periodic)
	temp := ".chk-00000001.ckpt.tmp"
	expectLog(t, disk, "create "+temp, "write "+temp, "sync "+temp, "close "+temp, "rename "+temp+" chk-00000001.ckpt", "syncdir")
}

func expectLog(t *testing.T, disk *checkpointtest.Disk, want ...string) {
	t.Helper()
	if got := disk.TakeLog(); !slices.Equal(got, want) {
		t.Errorf("operations\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// fates are the crashes that the tests below try at every point.
func fates() map[string]func() checkpointtest.Fate {
	list := map[string]func() checkpointtest.Fate{
		"lose": func() checkpointtest.Fate { return checkpointtest.Lose },
		"keep": func() checkpointtest.Fate { return checkpointtest.Keep },
	}
	for seed := range uint64(12) {
		list[fmt.Sprintf("seed %d", seed)] = func() checkpointtest.Fate { return checkpointtest.Random(seed) }
	}
	return list
}

// run is a job's life as far as the store sees it, up to the operation at which the process dies. It returns the highest
// checkpoint whose write was reported as done, and all numbers that were given out.
func run(ctx context.Context, disk *checkpointtest.Disk) (done sdk.CheckpointID, ids []sdk.CheckpointID, attempts []protocol.Attempt, err error) {
	s, err := checkpoint.OpenDir(ctx, disk, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		return 0, nil, nil, err
	}
	for i := range 4 {
		attempt, err := s.ReserveAttempts(ctx, 200)
		if err != nil {
			return done, ids, attempts, err
		}
		attempts = append(attempts, attempt, attempt+199)
		id, err := s.ReserveCheckpoints(ctx, 10)
		if err != nil {
			return done, ids, attempts, err
		}
		ids = append(ids, id, id+9)
		kind := protocol.Periodic
		if i == 2 {
			kind = protocol.Savepoint
		}
		if _, err := s.Write(ctx, manifest(id, kind)); err != nil {
			return done, ids, attempts, err
		}
		done = id
		if err := s.Prune(ctx, 2); err != nil {
			return done, ids, attempts, err
		}
	}
	return done, ids, attempts, s.Close()
}

// TestCrashAnywhere lets the process, and the machine, die in each operation of a run, twice in a row. Whatever survived:
// the directory opens, its newest checkpoint is the last one reported as done or one that was under way, and no number that
// was given out comes again.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	whole := checkpointtest.NewDisk()
	if _, _, _, err := run(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	total := whole.Ops()
	for name, fate := range fates() {
		for first := 1; first <= total+1; first++ {
			disk := checkpointtest.NewDisk()
			disk.StopAt(first)
			done, ids, attempts, err := run(t.Context(), disk)
			// A process that dies while it closes has lost nothing and may not notice.
			if err != nil && (first > total || !errors.Is(err, checkpointtest.ErrStopped)) {
				t.Fatalf("%s, stopped at %d of %d: %v", name, first, total, err)
			}
			for _, after := range []func() *checkpointtest.Disk{func() *checkpointtest.Disk { return disk.Crash(fate()) }, disk.Kill} {
				crashAgain(t, fmt.Sprintf("%s, stopped at %d", name, first), after(), 1+first%17, fate, done, slices.Clone(ids), slices.Clone(attempts))
			}
		}
	}
}

// crashAgain runs twice more on a disk that a crash left, dying early in the first of these runs.
func crashAgain(t *testing.T, name string, disk *checkpointtest.Disk, stop int, fate func() checkpointtest.Fate, done sdk.CheckpointID, ids []sdk.CheckpointID, attempts []protocol.Attempt) {
	t.Helper()
	for _, stop := range []int{stop, 1 << 20} {
		disk.StopAt(stop)
		done2, ids2, attempts2, err := rerun(t, disk, done)
		if err != nil && !errors.Is(err, checkpointtest.ErrStopped) {
			t.Fatalf("%s, then at %d: %v\n%s", name, stop, err, strings.Join(disk.TakeLog(), "\n"))
		}
		ids, attempts = append(ids, ids2...), append(attempts, attempts2...)
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Fatalf("%s, then at %d: checkpoint numbers %v", name, stop, ids)
		}
		if !slices.IsSorted(attempts) || len(slices.Compact(slices.Clone(attempts))) != len(attempts) {
			t.Fatalf("%s, then at %d: attempts %v", name, stop, attempts)
		}
		done = max(done, done2)
		disk = disk.Crash(fate())
	}
}

// rerun checks what an earlier run left, then runs again.
func rerun(t *testing.T, disk *checkpointtest.Disk, done sdk.CheckpointID) (sdk.CheckpointID, []sdk.CheckpointID, []protocol.Attempt, error) {
	t.Helper()
	s, err := checkpoint.OpenDir(t.Context(), disk, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		return done, nil, nil, err
	}
	m, _, err := s.Latest(t.Context())
	switch {
	case errors.Is(err, checkpointtest.ErrStopped):
		return done, nil, nil, err
	case errors.Is(err, checkpoint.ErrNoCheckpoint):
		if done > 0 {
			t.Fatalf("checkpoint %d was done and is gone", done)
		}
	case err != nil:
		t.Fatalf("latest, after checkpoint %d was done: %v\n%s", done, err, strings.Join(disk.TakeLog(), "\n"))
	case m.ID < done:
		t.Fatalf("latest is %d, but %d was done", m.ID, done)
	default:
		done = m.ID
	}
	for _, name := range disk.Names() {
		if strings.HasPrefix(name, ".") {
			t.Fatalf("%s was left behind", name)
		}
	}
	if err := s.Close(); err != nil {
		return done, nil, nil, err
	}
	again, ids, attempts, err := run(t.Context(), disk)
	return max(done, again), ids, attempts, err
}

// TestOneFailedOperation fails each operation of a write once. Unless the error says that the outcome is uncertain, the
// checkpoint is not there, whatever crash follows, and the next one can be written.
func TestOneFailedOperation(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		for failed := 1; failed <= 7; failed++ {
			for persistent := range 3 { // once, from then on, from then on in operations of that kind
				for name, fate := range fates() {
					disk := checkpointtest.NewDisk()
					s := open(t, disk)
					write(t, s, 1, protocol.Periodic)
					base := disk.Ops()
					var kind string
					disk.Inject(func(op checkpointtest.Op) error {
						if op.N == base+failed {
							kind = op.Kind
							return cause
						}
						if op.N > base+failed && (persistent == 1 || persistent == 2 && op.Kind == kind) {
							return cause
						}
						return nil
					})
					_, err := s.Write(t.Context(), manifest(2, protocol.Periodic))
					disk.Inject(nil)
					where := fmt.Sprintf("%v at %d, persistent %d, %s", cause, failed, persistent, name)
					if (err == nil) != (failed == 7) {
						t.Fatalf("%s: %v", where, err)
					}
					certain := err != nil && !errors.Is(err, checkpoint.ErrUncertain)
					if err != nil && (!errors.Is(err, cause) || !strings.Contains(err.Error(), "/disk")) {
						t.Fatalf("%s: the error does not say what failed where: %v", where, err)
					}
					m, _, err := open(t, disk.Crash(fate())).Latest(t.Context())
					if err != nil || certain && m.ID != 1 || failed == 7 && m.ID != 2 {
						t.Fatalf("%s: after the crash latest is %v, %v", where, m, err)
					}
					if certain {
						write(t, s, 3, protocol.Periodic)
					}
				}
			}
		}
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	s := open(t, disk)
	write(t, s, 1, protocol.Periodic)
	disk.Limit(100)
	_, err := s.Write(t.Context(), manifest(2, protocol.Periodic))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space") || !strings.Contains(err.Error(), "checkpoint 2") {
		t.Errorf("got %v", err)
	}
	if names := disk.Names(); !slices.Equal(names, []string{"chk-00000001.ckpt", "counters"}) {
		t.Errorf("left behind: %v", names)
	}
	disk.Limit(-1)
	write(t, s, 3, protocol.Periodic)
}

func TestOtherRefusalsOfTheSystem(t *testing.T) {
	t.Parallel()
	for cause, hint := range map[error]string{
		syscall.EROFS: "read-only", syscall.EACCES: "owner or the mode", syscall.EDQUOT: "quota", syscall.EIO: "disk of the state directory fails",
	} {
		disk := checkpointtest.NewDisk()
		disk.Inject(func(checkpointtest.Op) error { return cause })
		_, err := checkpoint.OpenDir(t.Context(), disk, checkpoint.FileOptions{Job: "orders"})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), hint) || !strings.Contains(err.Error(), "/disk/lock") {
			t.Errorf("%v: %v", cause, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		_, err := checkpoint.Open(t.Context(), path, checkpoint.FileOptions{Job: "orders"})
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "choose another checkpoint.dir") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUnwritableDirectory(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "owner or the mode") {
		t.Errorf("got %v", err)
	}
}

// bad returns a disk with checkpoint 1 intact and this as checkpoint 2.
func bad(t *testing.T, content []byte) *checkpointtest.Disk {
	t.Helper()
	disk := checkpointtest.NewDisk()
	s := open(t, disk)
	write(t, s, 1, protocol.Periodic)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk.Put("chk-00000002.ckpt", content)
	return disk
}

// fileOf returns a good checkpoint file.
func fileOf(t *testing.T, m *protocol.Manifest) []byte {
	t.Helper()
	disk := checkpointtest.NewDisk()
	s, err := checkpoint.OpenDir(t.Context(), disk, checkpoint.FileOptions{Job: m.Job})
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Write(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := disk.Get(filepath.Base(info.Path))
	return data
}

// refused opens the disk and checks that its newest checkpoint is refused by name, with what to do, and that the older one is
// there for whoever asks.
func refused(t *testing.T, what string, disk *checkpointtest.Disk, state checkpoint.FileState, cause error) {
	t.Helper()
	s := open(t, disk)
	defer s.Close()
	m, _, err := s.Latest(t.Context())
	fe, ok := errors.AsType[*checkpoint.FileError](err)
	if m != nil || !ok || fe.State != state || fe.Path != "/disk/chk-00000002.ckpt" {
		t.Fatalf("%s: %v, %v (state %v), want %v", what, m, err, fe, state)
	}
	for _, part := range []string{"/disk/chk-00000002.ckpt", "--restore PATH", "/disk/chk-00000001.ckpt", "--restore none"} {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%s: %q is not in %v", what, part, err)
		}
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Fatalf("%s: %v is no %v", what, err, cause)
	}
	if m, _, err := s.Read(t.Context(), 1); err != nil || m.ID != 1 {
		t.Fatalf("%s: the older checkpoint: %v, %v", what, m, err)
	}
	if _, _, err := s.Read(t.Context(), 2); err == nil {
		t.Fatalf("%s: was read", what)
	}
}

func TestEveryFlippedBitIsRefused(t *testing.T) {
	t.Parallel()
	good := fileOf(t, manifest(2, protocol.Periodic))
	for bit := range 8 * len(good) {
		flipped := slices.Clone(good)
		flipped[bit/8] ^= 1 << (bit % 8)
		s := open(t, bad(t, flipped))
		_, _, err := s.Latest(t.Context())
		fe, ok := errors.AsType[*checkpoint.FileError](err)
		if !ok || !errors.Is(err, sdk.ErrCorrupt) || fe.State == checkpoint.NewerVersion {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	refused(t, "flipped in the middle", bad(t, flip(good, len(good)/2)), checkpoint.Corrupt, sdk.ErrCorrupt)
}

func flip(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x40
	return b
}

func TestEveryCutIsRefused(t *testing.T) {
	t.Parallel()
	good := fileOf(t, manifest(2, protocol.Periodic))
	for n := range good {
		s := open(t, bad(t, good[:n]))
		_, _, err := s.Latest(t.Context())
		if fe, ok := errors.AsType[*checkpoint.FileError](err); !ok || fe.State != checkpoint.Truncated || !errors.Is(err, sdk.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	refused(t, "cut", bad(t, good[:len(good)-1]), checkpoint.Truncated, sdk.ErrCorrupt)
	refused(t, "empty", bad(t, nil), checkpoint.Truncated, sdk.ErrCorrupt)
	refused(t, "zeroes", bad(t, make([]byte, len(good))), checkpoint.NotCheckpoint, sdk.ErrCorrupt)
	refused(t, "left over", bad(t, append(slices.Clone(good), 0)), checkpoint.Corrupt, sdk.ErrCorrupt)
	refused(t, "text", bad(t, []byte("hello")), checkpoint.NotCheckpoint, sdk.ErrCorrupt)
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	refused(t, "renamed", bad(t, fileOf(t, manifest(7, protocol.Periodic))), checkpoint.Misplaced, sdk.ErrCorrupt)
	refused(t, "savepoint as checkpoint", bad(t, fileOf(t, manifest(2, protocol.Stop))), checkpoint.Misplaced, sdk.ErrCorrupt)
	other := manifest(2, protocol.Periodic)
	other.Job = "billing"
	refused(t, "other job", bad(t, fileOf(t, other)), checkpoint.Misplaced, checkpoint.ErrOtherJob)

	newer := checkpoint.Reseal(fileOf(t, manifest(2, protocol.Periodic)), 2)
	refused(t, "newer file", bad(t, newer), checkpoint.NewerVersion, nil)
	_, _, err := open(t, bad(t, newer)).Latest(t.Context())
	if unknown, ok := errors.AsType[*sdk.UnknownVersionError](err); !ok || unknown.Got != 2 || !strings.Contains(err.Error(), "newer build") {
		t.Errorf("newer file: %v", err)
	}
	refused(t, "version 0", bad(t, checkpoint.Reseal(newer, 0)), checkpoint.Corrupt, sdk.ErrCorrupt)

	disk := bad(t, newer)
	s := open(t, disk)
	disk.Inject(func(op checkpointtest.Op) error {
		if op.Kind == "read" && op.Name == "chk-00000002.ckpt" {
			return syscall.EIO
		}
		return nil
	})
	_, _, err = s.Latest(t.Context())
	if fe, ok := errors.AsType[*checkpoint.FileError](err); !ok || fe.State != checkpoint.Unreadable || !errors.Is(err, syscall.EIO) {
		t.Errorf("unreadable: %v", err)
	}
}

// TestDamagedNewestDoesNotStopAFreshStart: whoever decided for --restore none or an older file goes on in the same directory.
func TestDamagedNewestDoesNotStopAFreshStart(t *testing.T) {
	t.Parallel()
	s := open(t, bad(t, nil))
	id, err := s.ReserveCheckpoints(t.Context(), 1)
	if err != nil || id <= 2 {
		t.Fatalf("next number %d, %v", id, err)
	}
	write(t, s, id, protocol.Periodic)
	if m, _, err := s.Latest(t.Context()); err != nil || m.ID != id {
		t.Errorf("latest: %v, %v", m, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	disk := bad(t, nil)
	s := open(t, disk)
	write(t, s, 3, protocol.Savepoint)
	disk.Put(".chk-00000004.ckpt.tmp", []byte("half"))
	for _, foreign := range []string{"notes.txt", "chk-5.ckpt", "chk-00000000.ckpt", "chk-00000006.ckpt~", ".chk-00000007.ckpt", "chk-000000008.ckpt", "chk-99999999999999999999.ckpt"} {
		disk.Put(foreign, nil)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range list {
		got = append(got, fmt.Sprintf("%s %v %t", filepath.Base(i.Path), i.State, i.Savepoint))
	}
	want := []string{
		"chk-00000001.ckpt complete false", "chk-00000002.ckpt truncated false", "savepoint-00000003.ckpt complete true",
		".chk-00000004.ckpt.tmp unfinished false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if list[1].Err == nil || list[0].Kind != protocol.Periodic || list[0].Job != "orders" || list[0].Completed.IsZero() {
		t.Errorf("details: %+v", list)
	}
}

func TestInspectTakesNoLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info := write(t, s, 9, protocol.Savepoint)
	list, err := checkpoint.Inspect(t.Context(), dir)
	if err != nil || len(list) != 1 || list[0].ID != 9 || list[0].Path != info.Path || list[0].State != checkpoint.Usable {
		t.Errorf("inspect: %+v, %v", list, err)
	}
	if m, i, err := checkpoint.ReadFile(info.Path); err != nil || m.ID != 9 || i.Kind != protocol.Savepoint || i.Size != info.Size {
		t.Errorf("read: %v, %+v, %v", m, i, err)
	}
	moved := filepath.Join(t.TempDir(), "backup")
	data, err := os.ReadFile(info.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(moved, data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	for path, state := range map[string]checkpoint.FileState{
		moved: checkpoint.Truncated, filepath.Join(dir, "counters"): checkpoint.NotCheckpoint,
		filepath.Join(dir, "missing"): checkpoint.Unreadable, dir: checkpoint.Unreadable,
	} {
		_, _, err := checkpoint.ReadFile(path)
		if fe, ok := errors.AsType[*checkpoint.FileError](err); !ok || fe.State != state || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := checkpoint.Inspect(t.Context(), filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("inspect nowhere: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	s := open(t, disk)
	for id := sdk.CheckpointID(1); id <= 6; id++ {
		kind := protocol.Periodic
		if id == 2 || id == 4 {
			kind = protocol.Savepoint
		}
		write(t, s, id, kind)
	}
	prune := func(keep int, want ...string) {
		t.Helper()
		if err := s.Prune(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		names := slices.DeleteFunc(disk.Names(), func(n string) bool { return n == "counters" })
		if !slices.Equal(names, want) {
			t.Errorf("keep %d leaves %v, want %v", keep, names, want)
		}
	}
	prune(3, "chk-00000003.ckpt", "chk-00000005.ckpt", "chk-00000006.ckpt", "savepoint-00000002.ckpt", "savepoint-00000004.ckpt")
	prune(1, "chk-00000006.ckpt", "savepoint-00000002.ckpt", "savepoint-00000004.ckpt")
	write(t, s, 7, protocol.Stop)
	prune(1, "chk-00000006.ckpt", "savepoint-00000002.ckpt", "savepoint-00000004.ckpt", "savepoint-00000007.ckpt")
	if err := s.Delete(t.Context(), 7); !errors.Is(err, checkpoint.ErrNewest) {
		t.Errorf("the newest was deleted: %v", err)
	}
	if err := s.Delete(t.Context(), 2); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), 2); !errors.Is(err, checkpoint.ErrNoCheckpoint) {
		t.Errorf("deleted twice: %v", err)
	}
	prune(1, "chk-00000006.ckpt", "savepoint-00000004.ckpt", "savepoint-00000007.ckpt")
}

func TestDirectoryOfAnotherJob(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	if err := open(t, disk).Close(); err != nil {
		t.Fatal(err)
	}
	_, err := checkpoint.OpenDir(t.Context(), disk, checkpoint.FileOptions{Job: "billing"})
	if !errors.Is(err, checkpoint.ErrOtherJob) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"/disk", "orders", "billing", "checkpoint.dir"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	open(t, disk) // the refused one left no lock
	if _, err := checkpoint.OpenDir(t.Context(), checkpointtest.NewDisk(), checkpoint.FileOptions{}); err == nil {
		t.Error("a job without a name got a directory")
	}
}

func TestCountersAreGuarded(t *testing.T) {
	t.Parallel()
	setup := func() (*checkpointtest.Disk, []byte) {
		disk := checkpointtest.NewDisk()
		s := open(t, disk)
		write(t, s, 1, protocol.Periodic)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		data, _ := disk.Get("counters")
		return disk, data
	}
	tries := map[string]func(*checkpointtest.Disk, []byte){
		"missing":   func(d *checkpointtest.Disk, _ []byte) { _ = d.Remove("counters") },
		"truncated": func(d *checkpointtest.Disk, b []byte) { d.Put("counters", b[:len(b)-1]) },
		"empty":     func(d *checkpointtest.Disk, _ []byte) { d.Put("counters", nil) },
	}
	_, good := setup()
	for i := range good {
		tries[fmt.Sprintf("flipped at %d", i)] = func(d *checkpointtest.Disk, b []byte) { d.Put("counters", flip(b, i)) }
	}
	for name, breakIt := range tries {
		disk, data := setup()
		breakIt(disk, data)
		_, err := checkpoint.OpenDir(t.Context(), disk, checkpoint.FileOptions{Job: "orders"})
		fe, ok := errors.AsType[*checkpoint.FileError](err)
		if !ok || fe.Path != "/disk/counters" || !strings.Contains(err.Error(), "--restore PATH") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCloseGivesUnusedNumbersBack keeps a calm directory's numbers without holes.
func TestCloseGivesUnusedNumbersBack(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	for want := sdk.CheckpointID(1); want <= 5; want++ {
		s := open(t, disk)
		id, err := s.ReserveCheckpoints(t.Context(), 1)
		if err != nil || id != want {
			t.Fatalf("number %d, %v; want %d", id, err, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitingForTheDiskCanBeGivenUp: a slow disk holds up a second caller only as long as that one likes.
func TestWaitingForTheDiskCanBeGivenUp(t *testing.T) {
	t.Parallel()
	disk := checkpointtest.NewDisk()
	slow := &slowDir{Dir: disk, reached: make(chan struct{}), resume: make(chan struct{})}
	s := open(t, slow)
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(t.Context(), manifest(1, protocol.Periodic))
		written <- err
	}()
	<-slow.reached
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ReserveAttempts(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(slow.resume)
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// slowDir holds up the creation of checkpoint files.
type slowDir struct {
	checkpoint.Dir
	reached, resume chan struct{}
}

func (d *slowDir) Create(name string) (checkpoint.File, error) {
	if strings.Contains(name, "chk") {
		close(d.reached)
		<-d.resume
	}
	return d.Dir.Create(name)
}

// TestSecondProcess: this test's child takes the directory and is killed.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHoldDirectory$")
	child.Env = append(os.Environ(), "PENSTOCK_HOLD_DIRECTORY="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_, err = checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	locked, ok := errors.AsType[*checkpoint.LockedError](err)
	if !ok || !errors.Is(err, checkpoint.ErrLocked) || locked.Holder.PID != child.Process.Pid || locked.Holder.Job != "orders" {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{dir, fmt.Sprintf("process %d", child.Process.Pid), "job orders", "since 20"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed; that is the point
	s, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		t.Fatalf("the lock outlived its process: %v", err)
	}
	if _, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"}); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("twice in one process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestHoldDirectory is the child of TestSecondProcess.
func TestHoldDirectory(t *testing.T) {
	dir := os.Getenv("PENSTOCK_HOLD_DIRECTORY")
	if dir == "" {
		t.Skip("runs as a child of TestSecondProcess")
	}
	if _, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("held")
	select {} // until killed
}

// TestLockFileOfUnknownContent: what cannot be read is left out of the message, and no reason to let a second process in.
func TestLockFileOfUnknownContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("pid many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = checkpoint.Open(t.Context(), dir, checkpoint.FileOptions{Job: "orders"})
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("got %v", err)
	}
}

var newGolden = flag.Bool("new-golden", false, "write golden files that do not exist yet; existing ones are never overwritten")

// TestGoldenFiles reads every published file for ever, and writes the newest format to the same bytes. When it fails, the
// code is wrong and not the file: a changed format needs a new version and new files beside the old ones.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	const dir = "../../testdata/checkpoint"
	golden := map[string]*protocol.Manifest{
		"v1-periodic.ckpt":  manifest(42, protocol.Periodic),
		"v1-savepoint.ckpt": manifest(43, protocol.Savepoint),
		"v1-final.ckpt":     manifest(44, protocol.Final),
		"v1-stop.ckpt":      manifest(45, protocol.Stop),
	}
	for name, want := range golden {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); os.IsNotExist(err) && *newGolden {
			if err := os.WriteFile(path, fileOf(t, want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m, info, err := checkpoint.ReadFile(path)
		if err != nil || !reflect.DeepEqual(m, want) || info.State != checkpoint.Usable {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil || !slices.Equal(data, fileOf(t, want)) {
			t.Errorf("%s: written differently today: %v", name, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if golden[f.Name()] == nil {
			t.Errorf("no test reads %s", f.Name())
		}
	}
}

// FuzzReadFile: no content makes the reader panic, and what it takes can be written again.
func FuzzReadFile(f *testing.F) {
	files, err := filepath.Glob("../../testdata/checkpoint/*.ckpt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
		f.Add(data[:len(data)-1], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, fit bool) {
		if fit && len(data) > 56 { // give it a header that fits, so that the body is looked at
			data = slices.Clone(data)
			copy(data, "PENSTOCK")
			binary.LittleEndian.PutUint64(data[16:], uint64(len(data)-56))
			data = checkpoint.Reseal(data, 1)
		}
		m, state, err := checkpoint.DecodeFile(data)
		if (err == nil) != (state == checkpoint.Usable) {
			t.Fatalf("%v, %v", state, err)
		}
		if err != nil {
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Fatalf("read and cannot be written: %v", err)
		}
	})
}
