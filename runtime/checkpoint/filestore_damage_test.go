package checkpoint_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

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
