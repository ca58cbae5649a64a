package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

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
