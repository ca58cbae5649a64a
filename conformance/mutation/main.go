package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testTimeout ends a test that a mutation makes wait for ever; the standing test has noticed then.
const testTimeout = "90s"

// errSurvived says that rules can be broken and no test notices.
var errSurvived = errors.New("survived")

func main() {
	only := flag.String("only", "", "only the mutations whose rule contains this")
	markdown := flag.Bool("markdown", false, "print the result as a table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, ".", *only, *markdown); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, root, only string, markdown bool) error {
	all, err := parse(listed)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutation) bool { return !strings.Contains(m.rule, only) })
	if len(all) == 0 {
		return fmt.Errorf("no rule contains %q", only)
	}
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if markdown {
		fmt.Fprint(out, "| invariant | broken rule | caught by |\n|---|---|---|\n")
	}
	var problems []error
	for i := range all {
		m := &all[i]
		caught, err := m.try(ctx, root, dir)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err != nil:
			problems = append(problems, err)
			fmt.Fprintf(out, "PROBLEM   %v\n", err)
		case markdown:
			fmt.Fprintf(out, "| %s | %s | `%s` |\n", m.number, m.rule, strings.Join(caught, "`, `"))
		default:
			fmt.Fprintf(out, "caught    %s (%s)\n", m.rule, strings.Join(caught, ", "))
		}
	}
	fmt.Fprintf(os.Stderr, "%d rules broken, %d noticed\n", len(all), len(all)-len(problems))
	return errors.Join(problems...)
}

// try runs the tests of m against the broken code and returns which failed.
func (m *mutation) try(ctx context.Context, root, dir string) ([]string, error) {
	content, err := m.apply(root)
	if err != nil {
		return nil, err
	}
	overlay, err := m.overlay(root, dir, content)
	if err != nil {
		return nil, err
	}
	pattern := "^(" + strings.Join(m.names(), "|") + ")$"
	cmd := exec.CommandContext(ctx, "go", "test", "-race", "-count=1", "-timeout", testTimeout, "-overlay", overlay, "-run", pattern, m.test[0])
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=true") // what fails here is meant to
	output, err := cmd.CombinedOutput()
	if err == nil {
		return nil, fmt.Errorf("line %d: %s: %w: %s passes without it", m.line, m.rule, errSurvived, strings.Join(m.test, " "))
	}
	caught := noticed(string(output), m.names())
	if len(caught) == 0 {
		return nil, fmt.Errorf("line %d: %s: failed, but none of %s did:\n%s", m.line, m.rule, strings.Join(m.names(), ", "), tail(string(output)))
	}
	return caught, nil
}

// overlay writes what makes the compiler read content instead of the file.
func (m *mutation) overlay(root, dir, content string) (string, error) {
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, []byte(content), 0o600); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// failedTest finds a test that failed, or that was running when time was over, a goroutine panicked or was found to race.
var failedTest = regexp.MustCompile(`(?m)^(?:\s*--- FAIL: |\s+)(Test\w+)(?:/\S*)? \([0-9.ms]+s?\)`)

// noticed are those of names that failed. A panic or a fatal error of the runtime names the test in its stack only.
func noticed(output string, names []string) []string {
	failed := map[string]bool{}
	for _, found := range failedTest.FindAllStringSubmatch(output, -1) {
		failed[found[1]] = true
	}
	crashed := strings.Contains(output, "\npanic: ") || strings.HasPrefix(output, "panic: ") || strings.Contains(output, "fatal error: ")
	var caught []string
	for _, name := range names {
		if failed[name] || crashed && strings.Contains(output, "."+name+"(") {
			caught = append(caught, name)
		}
	}
	return caught
}

// tail is the end of what a failing run printed.
func tail(output string) string {
	const most = 2000
	return output[max(0, len(output)-most):]
}
