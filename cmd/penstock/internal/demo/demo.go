package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/progress"
	"github.com/penstock-dev/penstock/testdata/rides"
)

// Config of a demo.
type Config struct {
	Dir         string   // where job file, state and output go; what an earlier demo left there is replaced
	Program     string   // the penstock command
	Environment []string // of the processes; nil is that of this one
	Screen      *progress.Screen
	Records     int64 // of the data set; 0 is all
}

const (
	topic = "rides"
	// pace makes the job last a few seconds on any machine, so that there is a half way to kill it at.
	pace    = 10_000 // records a second and reader
	readers = 2
	// stallAfter is how long nothing may be committed before the demo gives up.
	stallAfter = 60 * time.Second
	look       = 50 * time.Millisecond
	marker     = ".penstock-demo"
)

const jobFile = `# Made by penstock demo. The broker of the demo is gone; penstock dev kafka runs another one.
job: rides
parallelism: %d
source:
  kafka:
    brokers: ["%s"]
    topics: ["%s"]
    start: earliest
    stop: latest
    records_per_second: %d   # so that there is something to watch
sink:
  file: {path: %s, format: jsonl}
checkpoint: {dir: %s, interval: 200ms}
`

// Run runs the demo. It says on the screen what happens, and returns an error when the proof fails.
func Run(ctx context.Context, c Config) error {
	if c.Records == 0 {
		c.Records = rides.Count
	}
	if err := prepare(c.Dir); err != nil {
		return err
	}
	address, stop, err := c.broker(ctx)
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	defer stop()
	c.say("Broker on %s, topic %q, %s on %d partitions.", address, topic, human.Plural(c.Records, "record"), Partitions)
	out := filepath.Join(c.Dir, "out")
	job := filepath.Join(c.Dir, "rides.yaml")
	text := fmt.Sprintf(jobFile, readers, address, topic, pace, strconv.Quote(out), strconv.Quote(c.state()))
	if err := os.WriteFile(job, []byte(text), 0o644); err != nil {
		return err
	}
	w := watch{Config: c, counter: counter{dir: out, files: map[string]int{}}}
	if err := w.killHalfWay(ctx, job); err != nil {
		return err
	}
	if err := w.finish(ctx, job); err != nil {
		return err
	}
	proof, err := Verify(out, c.Records)
	if err != nil {
		return err
	}
	if !proof.Good(int(c.Records)) {
		return fmt.Errorf("the proof failed: %v. Please report this, with the directory %s", proof, c.Dir)
	}
	c.say("Done: %s, each exactly once, in order per partition. Look at %s, or go on with README \"Your first job\".", human.Plural(c.Records, "record"), display(out))
	return nil
}

func (c Config) state() string { return filepath.Join(c.Dir, "state") }

func (c Config) say(format string, args ...any) { c.Screen.Line(fmt.Sprintf(format, args...)) }

// display keeps a relative path recognisable as one.
func display(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return "." + string(filepath.Separator) + path
}

// prepare makes the directory, empty but for a marker by which the next demo knows that it may empty it.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return fmt.Errorf("%s is not empty and not from an earlier demo: choose another directory with --dir", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}

// broker starts a broker that lives until stop is called or this process ends.
func (c Config) broker(ctx context.Context) (address string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, c.Program, "dev", "kafka", "--forked", "--port", "0", "--topic", fmt.Sprintf("%s:%d", topic, Partitions), "--records", strconv.FormatInt(c.Records, 10))
	cmd.Env = c.Environment
	stdin, err := cmd.StdinPipe() // closed by the end of this process, however it ends
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill() // it keeps nothing that an orderly end would save
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(io.LimitReader(stdout, 1<<10)).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("it ended early: %s", strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(line), stop, nil
}
