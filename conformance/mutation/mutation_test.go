package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
)

// Every mutation fits the code, stays Go, and names tests that exist. That they notice takes minutes: make mutations.
func TestEveryMutationFitsTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := parse(listed)
	if err != nil {
		t.Fatal(err)
	}
	invariants := map[string]bool{}
	for _, m := range all {
		invariants[m.number] = true
		content, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, content, 0); err != nil {
			t.Errorf("line %d: %s: %v", m.line, m.rule, err)
		}
		tests := testsOf(t, filepath.Join(root, m.test[0]))
		for _, name := range m.names() {
			if !tests[name] {
				t.Errorf("line %d: %s has no test %s", m.line, m.test[0], name)
			}
		}
	}
	for n := 1; n <= 16; n++ {
		if name := string(rune('0'+n/10)) + string(rune('0'+n%10)); !invariants[name] {
			t.Errorf("invariant %s is never broken", name)
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testFunc.FindAllSubmatch(b, -1) {
			names[string(found[1])] = true
		}
	}
	return names
}

func TestNoticed(t *testing.T) {
	names := []string{"TestA", "TestB"}
	for output, want := range map[string][]string{
		"--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/x (0.00s)\n":                                 {"TestA"},
		"    --- FAIL: TestB/x (0.00s)\n--- FAIL: TestC (0.00s)\n":                                 {"TestB"},
		"panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestB (1m0s)\n":                   {"TestB"},
		"panic: boom\n\ngoroutine 7 [running]:\nexample.com/x.TestA(0xc0)\n":                       {"TestA"},
		"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 7:\nexample.com/x.TestA(": {"TestA"},
		"x.go:3:1: undefined: y\nFAIL\tx [build failed]\n":                                         nil,
		"--- PASS: TestA (0.01s)\nok\n":                                                            nil,
	} {
		if got := noticed(output, names); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", output, got, want)
		}
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for _, text := range []string{"# no rule", "# 01: rule\nnonsense here", "# 01: rule\nfile x\ntest ./x TestX\n--- was\na\n--- is\na\n"} {
		if _, err := parse(text); err == nil || !regexp.MustCompile(`^line \d+: `).MatchString(err.Error()) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
