package checkpointtest_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
)

// put writes a file and syncs its content, but not the directory.
func put(t *testing.T, d *checkpointtest.Disk, name, content string) {
	t.Helper()
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCrashTakesWhatWasNotSynced walks through the difference between content and names.
func TestCrashTakesWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	d := checkpointtest.NewDisk()
	put(t, d, "a", "old")
	if got := d.Crash(checkpointtest.Lose).Names(); len(got) != 0 {
		t.Errorf("the name survived without a sync of the directory: %v", got)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := d.Rename("b", "a"); err != nil {
		t.Fatal(err)
	}
	lost := d.Crash(checkpointtest.Lose)
	if got, _ := lost.Get("a"); string(got) != "old" || !slices.Equal(lost.Names(), []string{"a"}) {
		t.Errorf("everything lost: %v, a is %q", lost.Names(), got)
	}
	kept := d.Crash(checkpointtest.Keep)
	if got, _ := kept.Get("a"); string(got) != "new" || !slices.Equal(kept.Names(), []string{"a"}) {
		t.Errorf("everything kept: %v, a is %q", kept.Names(), got)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.Crash(checkpointtest.Lose).Get("a"); len(got) != 0 {
		t.Errorf("the name was synced and the content not, and yet a is %q", got)
	}
}

// TestKillIsNoCrash: what a killed process wrote is still there, and still can be lost.
func TestKillIsNoCrash(t *testing.T) {
	t.Parallel()
	d := checkpointtest.NewDisk()
	put(t, d, "a", "x")
	d.StopAt(1)
	if err := d.Sync(); !errors.Is(err, checkpointtest.ErrStopped) {
		t.Fatalf("got %v", err)
	}
	d = d.Kill()
	if !slices.Equal(d.Names(), []string{"a"}) || len(d.Crash(checkpointtest.Lose).Names()) != 0 {
		t.Errorf("after the kill: %v", d.Names())
	}
}

func TestFullDiskTakesAPart(t *testing.T) {
	t.Parallel()
	d := checkpointtest.NewDisk()
	d.Limit(3)
	f, err := d.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte("hello")); n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got, _ := d.Get("a"); string(got) != "hel" {
		t.Errorf("a is %q", got)
	}
}
