package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// config of one run.
type config struct {
	kills, records, partitions int
	rescale                    bool
	source                     string // kafka or kinesis
	efo                        bool   // kinesis with enhanced fan-out
	rate                       int    // records per second of all readers together; 0 is no limit
	interval                   time.Duration
	shortest, longest          time.Duration
	seed                       uint64
	sink                       string        // file or kafka
	brokers                    []string      // empty starts servers
	servers                    string        // which ones
	penstock                   string        // path of the command; empty builds it
	self                       string        // the program that serves the broker; empty is this one
	losses                     *atomic.Int64 // of brokers, so far
	say                        func(format string, args ...any)
}

func (c config) flags() string {
	s := fmt.Sprintf("-kills %d -records %d -partitions %d -rate %d -interval %s -shortest %s -longest %s -seed %d",
		c.kills, c.records, c.partitions, c.rate, c.interval, c.shortest, c.longest, c.seed)
	if c.source == kinesisSource {
		s = fmt.Sprintf("-source %s -kills %d -interval %s -shortest %s -longest %s -seed %d", c.source, c.kills, c.interval, c.shortest, c.longest, c.seed)
	}
	if c.rescale {
		s += " -rescale"
	}
	if c.efo {
		s += " -efo"
	}
	if c.sink == kafkaSink {
		s += " -sink " + kafkaSink
	}
	if c.servers != "" && c.servers != embedded {
		s += " -servers " + c.servers
	}
	return s
}

// maxRefused is how many starts may fail while a cluster loses brokers, startPause the wait after each.
const (
	maxRefused = 50
	startPause = 500 * time.Millisecond
)

// lastLife bounds the life in which the command is to end by itself.
const lastLife = 5 * time.Minute

// Sinks that can be put to the test.
const (
	fileSink  = "file"
	kafkaSink = "kafka"
)

const (
	topic       = "crash"
	outputTopic = "crash-output" // of the kafka sink
)

const jobFile = `job: crash
parallelism: %d
source:
  kafka:
    brokers: [%s]
    topics: [%s]
    start: earliest
    stop: latest
    isolation: read_committed
    records_per_second: %d
sink:
  %s
checkpoint: {dir: %s, interval: %s, keep: 3}
`

// crash runs the whole thing. On success it leaves nothing behind.
func crash(ctx context.Context, c config) (report, error) {
	c.losses = new(atomic.Int64)
	dir, err := os.MkdirTemp("", "penstock-crash-")
	if err != nil {
		return report{}, err
	}
	r, err := c.in(ctx, dir)
	if err != nil {
		return r, fmt.Errorf("%w (seed %d; everything is in %s)", err, c.seed, dir)
	}
	return r, os.RemoveAll(dir)
}

// build builds the command.
func build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/penstock-dev/penstock/cmd/penstock")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build penstock: %w: %s", err, out)
	}
	return nil
}

func (c config) in(ctx context.Context, dir string) (report, error) {
	if c.penstock == "" {
		c.penstock = filepath.Join(dir, "penstock")
		if err := build(ctx, c.penstock); err != nil {
			return report{}, err
		}
	}
	lose, stop, err := c.start(ctx, dir)
	if err != nil {
		return report{}, err
	}
	defer stop()
	c.say("writing %d records on %d partitions, a quarter of the transactions aborted", c.records, c.partitions)
	if err := fill(ctx, c.brokers, c.partitions, c.records); err != nil {
		return report{}, fmt.Errorf("write the topic: %w", err)
	}
	losing, steady := context.WithCancel(ctx)
	defer steady()
	lose(losing)
	kills, err := c.lives(ctx, dir)
	if err != nil {
		return report{}, err
	}
	steady()
	r, err := c.verify(ctx, dir)
	r.kills, r.losses = kills, int(c.losses.Load())
	if err != nil {
		return r, err
	}
	return r, r.check()
}

func (c config) verify(ctx context.Context, dir string) (report, error) {
	if c.sink == kafkaSink {
		return verifyTopic(ctx, c.brokers, c.partitions, c.records)
	}
	return verify(filepath.Join(dir, "out"), c.partitions, c.records)
}

// lives starts and kills the command, and lets the last life end by itself. It returns how many were killed.
func (c config) lives(ctx context.Context, dir string) (kills int, err error) {
	rng := rand.New(rand.NewPCG(c.seed, 0)) //nolint:gosec // a schedule to repeat, no secret
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	refused := 0
	for parallelism := 2; ; {
		if c.rescale {
			parallelism = 1 + rng.IntN(c.partitions+1)
		}
		file := filepath.Join(dir, "job.yaml")
		if err := c.writeJob(file, dir, parallelism); err != nil {
			return kills, err
		}
		moment := time.After(lastLife)
		if kills < c.kills {
			moment = c.moment(ctx, rng, filepath.Join(dir, "state"))
		}
		ended, err := one(ctx, c.penstock, file, log, moment)
		switch {
		case err != nil && ctx.Err() != nil:
			return kills, context.Cause(ctx)
		case err != nil && c.servers == cluster && refused < maxRefused:
			refused++ // it could not start while a partition had no leader; whoever runs it starts it again
			c.say("life %d: %v", kills+1, err)
			select {
			case <-ctx.Done():
			case <-time.After(startPause):
			}
			continue
		case err != nil:
			return kills, fmt.Errorf("life %d: %w", kills+1, err)
		case ended:
			return kills, nil // before its last kill too: then the topic was read up
		case kills == c.kills:
			return kills, fmt.Errorf("the job did not end within %s", lastLife)
		}
		kills++
		if kills%10 == 0 {
			c.say("killed %d times", kills)
		}
	}
}

func (c config) writeJob(file, dir string, parallelism int) error {
	quoted := make([]string, len(c.brokers))
	for i, b := range c.brokers {
		quoted[i] = strconv.Quote(b)
	}
	brokers := strings.Join(quoted, ", ")
	sink := fmt.Sprintf("file: {path: %s, format: jsonl}", filepath.Join(dir, "out"))
	if c.sink == kafkaSink {
		sink = fmt.Sprintf("kafka: {brokers: [%s], topic: %s, partitioning: keep}", brokers, outputTopic)
	}
	text := fmt.Sprintf(jobFile, parallelism, brokers, topic, (c.rate+parallelism-1)/parallelism, sink, filepath.Join(dir, "state"), c.interval)
	return os.WriteFile(file, []byte(text), 0o600)
}

// moment chooses when the next life ends. A third ends at a random time, wherever the command then is, also while it starts.
// The others end shortly after one of the next checkpoints, so that every run makes progress and is killed in the middle of it.
func (c config) moment(ctx context.Context, rng *rand.Rand, state string) <-chan time.Time {
	if rng.IntN(3) == 0 {
		return time.After(c.shortest + time.Duration(rng.Int64N(int64(c.longest-c.shortest))))
	}
	checkpoints, delay := 1+rng.IntN(3), time.Duration(rng.Int64N(int64(2*c.interval)))
	due := make(chan time.Time, 1)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		newest := newestCheckpoint(state)
		for checkpoints > 0 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := newestCheckpoint(state); now != newest {
				newest = now
				checkpoints--
			}
		}
		due <- <-time.After(delay)
	}()
	return due
}

// newestCheckpoint is the name of the newest checkpoint file.
func newestCheckpoint(state string) string {
	names, err := filepath.Glob(filepath.Join(state, "chk-*"))
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// one is one life of the command. ended says that it ended by itself, and well.
func one(ctx context.Context, penstock, file string, log *os.File, moment <-chan time.Time) (ended bool, err error) {
	cmd := exec.CommandContext(ctx, penstock, "run", file)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			return false, fmt.Errorf("the command failed: %w: %s", err, tail(log.Name()))
		}
		return true, nil
	case <-moment:
		err := cmd.Process.Signal(syscall.SIGKILL)
		if ended := <-done; ended == nil || errors.Is(err, os.ErrProcessDone) {
			return false, nil // it ended in the same moment; the next life says so
		}
		return false, err
	}
}

// tail is the end of a file, for an error message: what the last life said last.
func tail(path string) string {
	const lines = 2
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " ")
}
