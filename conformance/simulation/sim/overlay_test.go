package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The edits fit the toolchain that runs this test. When one does not, look for what the runtime does now instead.
func TestEditsFitTheToolchain(t *testing.T) {
	t.Parallel()
	if _, err := writeOverlay(runtime.GOROOT(), t.TempDir()); err != nil { //nolint:staticcheck // go test sets it
		t.Error(err)
	}
}

func TestAnEditThatDoesNotFitIsNamed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, e := range edits {
		file := filepath.Join(root, "src", filepath.FromSlash(e.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("package runtime\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := writeOverlay(root, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), edits[0].why) {
		t.Errorf("got %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := parse([]string{"-seeds", "0"}); err == nil {
		t.Error("no seeds are no run")
	}
	if o, err := parse(nil); err != nil || o.seeds != 1000 || o.processes < 1 {
		t.Errorf("%+v, %v", o, err)
	}
}
