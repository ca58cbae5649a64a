package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewConnector(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gauges")
	code, out, errs := do(t, "new", "connector", "gauges", "--dir", dir, "--module", "example.org/gauges")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"Connector gauges is in " + dir, "go mod tidy", "go test -race ./..."} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module example.org/gauges\n") {
		t.Errorf("go.mod is %q, %v", mod, err)
	}
	if code, _, errs := do(t, "new", "connector", "gauges", "--dir", dir); code != 2 || !strings.Contains(errs, "not empty") {
		t.Errorf("written twice: exit code %d, %q", code, errs)
	}
	if code, _, errs := do(t, "new", "connector", "My Thing"); code != 2 || !strings.Contains(errs, `"My Thing"`) {
		t.Errorf("a bad name: exit code %d, %q", code, errs)
	}
}
