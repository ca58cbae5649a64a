package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// penstock runs the command of this repository.
type penstock struct {
	binary string
	dir    string // for job files, state and output
	runs   int
}

// newPenstock builds the command, unless a binary is given.
func newPenstock(ctx context.Context, binary, dir string) (*penstock, error) {
	if binary == "" {
		binary = filepath.Join(dir, "penstock")
		build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", ".."), "-o", binary, "./cmd/penstock")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build penstock (run this from conformance/peers, with go run -C): %w: %s", err, out)
		}
	}
	binary, err := filepath.Abs(binary)
	return &penstock{binary: binary, dir: dir}, err
}

const (
	toNothing = `blackhole: {}`
	toFiles   = `file: {path: "%s", format: jsonl}`
)

// job is a program that reads the topic to its end into a sink.
func (p *penstock) job(broker, sink string, source ...string) (program, error) {
	p.runs++
	dir := filepath.Join(p.dir, fmt.Sprintf("run-%d", p.runs))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return program{}, err
	}
	if sink == toFiles {
		sink = fmt.Sprintf(toFiles, filepath.Join(dir, "out"))
	}
	more := ""
	for _, s := range source {
		more += ", " + s
	}
	file := filepath.Join(dir, "job.yaml")
	text := fmt.Sprintf(`job: bench
parallelism: 1
source:
  kafka: {brokers: ["%s"], topics: ["%s"], start: earliest, stop: latest%s}
sink:
  %s
checkpoint: {dir: "%s", interval: 5s}
`, broker, topicName, more, sink, filepath.Join(dir, "state"))
	return program{command: []string{p.binary, "run", file}}, os.WriteFile(file, []byte(text), 0o644)
}

// clean removes what the runs left.
func (p *penstock) clean() error {
	var all error
	for i := range p.runs {
		all = errors.Join(all, os.RemoveAll(filepath.Join(p.dir, fmt.Sprintf("run-%d", i+1))))
	}
	return all
}
