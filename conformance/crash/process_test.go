package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/penstock-dev/penstock/connectors/fake"
)

// builtIn is the folder of built, for TestMain to remove.
var builtIn string

// built is the command, built once for all tests of the package.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "penstock-built-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	path := filepath.Join(dir, "penstock")
	cmd := exec.Command("go", "build", "-o", path, "github.com/penstock-dev/penstock/cmd/penstock")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build penstock: %w: %s", err, out)
	}
	return path, nil
})

// process is one life of the command.
type process struct {
	*exec.Cmd
	said  *output
	ended chan error
}

// output is what a process printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts the command on a job file.
func launch(t *testing.T, file string) *process {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), path, "run", file), said: &output{}, ended: make(chan error, 1)}
	p.Stdout, p.Stderr = p.said, p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.Process.Kill()
	})
	go func() { p.ended <- p.Wait() }()
	return p
}

// code waits for the end and is the exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := <-p.ended // the test's own time limit ends a hang, with the stacks
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// madeUp is a job of made-up records; sink is its section.
func madeUp(t *testing.T, file, state, sink string, splits, perSplit int) {
	t.Helper()
	text := fmt.Sprintf(`job: made-up
parallelism: 2
source:
  fake: {splits: %d, records_per_split: %d, records_per_second: 20000}
sink:
  %s
checkpoint: {dir: %s, interval: 50ms, keep: 3}
runtime: {restart_initial: 10ms, restart_limit: 3}
`, splits, perSplit, sink, state)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eachOnce checks that the values are those of the made-up records, each once.
func eachOnce(t *testing.T, values []string, splits, perSplit int) {
	t.Helper()
	seen := map[[2]int64]int{}
	for _, v := range values {
		split, i, err := fake.ParseValue([]byte(v))
		if err != nil {
			t.Fatal(err)
		}
		seen[[2]int64{int64(split), i}]++
	}
	if len(seen) != splits*perSplit || len(values) != len(seen) {
		t.Errorf("%d different records in %d, want each of %d once", len(seen), len(values), splits*perSplit)
	}
}

// committedValues are the lines of the visible files of a raw output.
func committedValues(t *testing.T, dir string) []string {
	t.Helper()
	var values []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			values = append(values, strings.TrimSuffix(line, "\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}
