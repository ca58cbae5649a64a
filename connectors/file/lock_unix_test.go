//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// Two openings of one file exclude each other as two processes do, so a test can be the other process.
func TestOneProcessWritesTheOutputOfAJob(t *testing.T) {
	dir := t.TempDir()
	other, err := lockFile(filepath.Join(dir, lockName("orders")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.WriteAt([]byte("4711\n"), 0); err != nil {
		t.Fatal(err)
	}
	open := func(job string, task int) (*writer, error) {
		w := newWriter(Sink{Path: dir}.withDefaults(), writerContext{job, task, 1, 0}, openRoot, nil)
		return w, w.Open(t.Context())
	}
	_, err = open("orders", 0)
	if !errors.Is(err, ErrInUse) || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), "process, 4711") || !strings.Contains(err.Error(), "stop it") {
		t.Errorf("while another process writes: %v", err)
	}
	free := func(job string) bool {
		t.Helper()
		f, err := lockFile(filepath.Join(dir, lockName(job)))
		if err == nil {
			err = f.Close()
		} else if errors.Is(err, ErrInUse) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	var writers []*writer
	for task := range 3 { // tasks share it
		w, err := open("orders", task)
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	if w, err := open("payments", 0); err != nil { // jobs do not
		t.Error(err)
	} else if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for i, w := range writers {
		if free("orders") {
			t.Errorf("free while %d writers are open", len(writers)-i)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !free("orders") || !free("payments") {
		t.Error("locked after the last writer was closed")
	}
	if b, err := os.ReadFile(filepath.Join(dir, lockName("orders"))); err != nil || strings.TrimSpace(string(b)) == "4711" {
		t.Errorf("the lock file says %q, %v", b, err)
	}
}
