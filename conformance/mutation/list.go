package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed mutations.txt
var listed string

// mutation is one rule and how to break it.
type mutation struct {
	line   int    // in mutations.txt
	number string // of the invariant in docs/design.md, section 11
	rule   string
	file   string // relative to the root of the module
	test   []string
	was    string
	is     string
}

// section is what the lines that follow belong to.
type section int

const (
	head section = iota
	was
	is
)

// parse reads the list. A mutation begins with "# invariant: rule"; "file" and "test" follow, and the lines under "was" and
// "is", which end at the next heading.
func parse(text string) ([]mutation, error) {
	var all []mutation
	at := head
	for i, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "#" {
			number, rule, ok := strings.Cut(rest, ": ")
			if !ok {
				return nil, fmt.Errorf("line %d: %q is not \"# invariant: rule\"", i+1, line)
			}
			all = append(all, mutation{line: i + 1, number: number, rule: rule})
			at = head
			continue
		}
		if len(all) == 0 {
			continue // what introduces the list
		}
		m := &all[len(all)-1]
		switch {
		case line == "--- was":
			at = was
		case line == "--- is":
			at = is
		case at == was:
			m.was += line + "\n"
		case at == is:
			m.is += line + "\n"
		case word == "file":
			m.file = rest
		case word == "test":
			m.test = strings.Fields(rest)
		case line != "":
			return nil, fmt.Errorf("line %d: %q is neither file nor test", i+1, line)
		}
	}
	for i := range all {
		m := &all[i]
		m.was, m.is = strings.TrimRight(m.was, "\n"), strings.TrimRight(m.is, "\n")
		if m.file == "" || len(m.test) < 2 || m.was == "" || m.was == m.is {
			return nil, fmt.Errorf("line %d: %s: file, test (a package and at least one name), was and is are needed", m.line, m.rule)
		}
	}
	return all, nil
}

// apply returns the file with the rule broken.
func (m *mutation) apply(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("line %d: %w", m.line, err)
	}
	if n := strings.Count(string(b), m.was); n != 1 {
		return "", fmt.Errorf("line %d: %s: the lines to change are %d times in %s, they have to be there once", m.line, m.rule, n, m.file)
	}
	return strings.Replace(string(b), m.was, m.is, 1), nil
}

// names are the tests that must notice; the package is the first word of test.
func (m *mutation) names() []string { return m.test[1:] }
