package checkpoint_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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
