package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// disk mounts a small disk of memory, which only root may.
func disk(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // a folder of this test
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("SKIPPED: no disk can be mounted here (%v); run as root to see what a full one does", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ballast fills what is left of a disk.
func ballast(t *testing.T, dir string) (remove func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 16
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that fills up while the job runs ends it with an error that names the file and the remedy. Once there is room again,
// the job goes on, and every record is there once.
func TestAFullDiskIsNamedAndNothingIsLost(t *testing.T) {
	const splits, perSplit = 2, 10_000
	for name, folder := range map[string]string{"of the state": "state", "of the output": "out"} {
		t.Run(name, func(t *testing.T) {
			full, dir := disk(t), t.TempDir()
			places := map[string]string{"state": filepath.Join(dir, "state"), "out": filepath.Join(dir, "out")}
			places[folder] = filepath.Join(full, folder)
			file := filepath.Join(dir, "job.yaml")
			madeUp(t, file, places["state"], "file: {path: "+places["out"]+", format: raw}", splits, perSplit)
			p := launch(t, file)
			eventually(t, "there is a checkpoint", func() bool { return newestCheckpoint(places["state"]) != "" })
			remove := ballast(t, full)
			if code := p.code(t); code != 1 {
				t.Errorf("the job on a full disk ended with %d", code)
			}
			for _, want := range []string{places[folder], "no space left on device", "ree space"} {
				if !strings.Contains(p.said.String(), want) {
					t.Errorf("%q is not in\n%s", want, p.said)
				}
			}
			remove()
			if p := launch(t, file); p.code(t) != 0 {
				t.Fatalf("with room again:\n%s", p.said)
			}
			eachOnce(t, committedValues(t, places["out"]), splits, perSplit)
		})
	}
}

// A disk that can only be read is an error at the start that names the folder; nothing has changed when it can be written again.
func TestAReadOnlyDiskIsNamed(t *testing.T) {
	const splits, perSplit = 2, 10_000
	for name, folder := range map[string]string{"of the state": "state", "of the output": "out"} {
		t.Run(name, func(t *testing.T) {
			mounted, dir := disk(t), t.TempDir()
			places := map[string]string{"state": filepath.Join(dir, "state"), "out": filepath.Join(dir, "out")}
			places[folder] = filepath.Join(mounted, folder)
			file := filepath.Join(dir, "job.yaml")
			madeUp(t, file, places["state"], "file: {path: "+places["out"]+", format: raw}", splits, perSplit)
			p := launch(t, file)
			eventually(t, "there is a checkpoint", func() bool { return newestCheckpoint(places["state"]) != "" })
			p.signal(t, syscall.SIGKILL)
			<-p.ended
			remount(t, mounted, syscall.MS_RDONLY)
			p = launch(t, file)
			if code := p.code(t); code != 1 {
				t.Errorf("the job on a disk that cannot be written ended with %d", code)
			}
			for _, want := range []string{places[folder], "read-only file system"} {
				if !strings.Contains(p.said.String(), want) {
					t.Errorf("%q is not in\n%s", want, p.said)
				}
			}
			remount(t, mounted, 0)
			if p := launch(t, file); p.code(t) != 0 {
				t.Fatalf("with a disk that can be written:\n%s", p.said)
			}
			eachOnce(t, committedValues(t, places["out"]), splits, perSplit)
		})
	}
}

func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, "size=8m"); err != nil {
		t.Fatal(err)
	}
}
