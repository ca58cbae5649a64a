package scaffold

import (
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/conformance"
)

// root is the checkout that this test is in.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheWholeConnectorIsThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "gauges")
	w, err := Write(Connector{Name: "gauges", Module: "example.org/x/gauges", Dir: dir, Version: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		".github/workflows/ci.yml", ".gitignore", "README.md", "client.go", "fetch.go", "gauges.go", "gauges_test.go", "go.mod",
		"system_test.go", "testdata/split-v1.bin",
	}
	if slices.Sort(w.Files); !slices.Equal(w.Files, want) {
		t.Errorf("wrote %v, want %v", w.Files, want)
	}
	for _, name := range w.Files {
		text := read(t, dir, name)
		if strings.Contains(text, "<%") || strings.Contains(text, "NAME") || text == "" {
			t.Errorf("%s is not filled in", name)
		}
		if strings.HasSuffix(name, ".go") {
			if formatted, err := format.Source([]byte(text)); err != nil || string(formatted) != text {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
	}
	if mod := read(t, dir, "go.mod"); !strings.Contains(mod, "require github.com/penstock-dev/penstock v1.2.3\n") || strings.Contains(mod, "replace") {
		t.Errorf("go.mod is %q", mod)
	}
	if w.Checkout != "" {
		t.Errorf("a checkout was found at %q", w.Checkout)
	}
}

func TestACheckoutIsReferredTo(t *testing.T) {
	t.Parallel()
	around := t.TempDir()
	if err := os.WriteFile(filepath.Join(around, "go.mod"), []byte("module github.com/penstock-dev/penstock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Write(Connector{Name: "gauges", Dir: filepath.Join(around, "connectors", "gauges")})
	if err != nil {
		t.Fatal(err)
	}
	if mod := read(t, w.Dir, "go.mod"); !strings.Contains(mod, "replace github.com/penstock-dev/penstock => ../..\n") {
		t.Errorf("go.mod is %q", mod)
	}
}

func TestWhatCannotBeIsToldAndNothingWritten(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Connector{
		`connector name "My-Thing"`:  {Name: "My-Thing"},
		`connector name "func"`:      {Name: "func"},
		`connector name ""`:          {},
		`module path "a b"`:          {Name: "gauges", Module: "a b"},
		"already and not empty":      {Name: "gauges", Dir: full},
		`module path "example.com/"`: {Name: "gauges", Module: "example.com/"},
	} {
		if c.Dir == "" {
			c.Dir = filepath.Join(t.TempDir(), "x")
		}
		if _, err := Write(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", c, err, want)
		}
		if _, err := os.Stat(c.Dir); c.Dir != full && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: something was written", c)
		}
	}
}

func TestOnlyReleasesCanBeRequired(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v0.4.0-rc.1": "v0.4.0-rc.1", "(devel)": "", "": "",
		"v0.0.0-20261130014345-0123456789ab": "", "v1.2.4-0.20261130014345-0123456789ab+dirty": "",
	} {
		if got := Released(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// The connector as it is written compiles and passes its own tests, with the checkout that this test is in, and nothing is skipped.
func TestTheConnectorPassesItsTests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gauges")
	if _, err := Write(Connector{Name: "gauges", Dir: dir}); err != nil {
		t.Fatal(err)
	}
	goTool := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		// What the checkout needs is here already, or this test would not run.
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GONOSUMDB=*")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// The checkout's checksums and versions, in place of go mod tidy, which asks for what nothing here needs.
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte(read(t, root(t), "go.sum")), 0o600); err != nil {
		t.Fatal(err)
	}
	goTool("mod", "edit", "-require=github.com/penstock-dev/penstock@v0.0.0", "-replace=github.com/penstock-dev/penstock="+root(t))
	goTool("vet", "./...")
	out := goTool("test", "-v", "./...")
	if passed := strings.Count(out, "--- PASS: TestConformance/"); passed < len(conformance.Cases()) || strings.Contains(out, "--- SKIP") {
		t.Errorf("%d cases of the suite have passed, of %d, or some were skipped:\n%s", passed, len(conformance.Cases()), out)
	}
}

// The skeleton says of itself that it passes the suite as it is.
func TestTheConnectorRecordsItsPass(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gauges")
	if _, err := Write(Connector{Name: "gauges", Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("c.Suite = %d //", conformance.Version); !strings.Contains(read(t, dir, "gauges.go"), want) {
		t.Errorf("gauges.go does not say %s", want)
	}
}
