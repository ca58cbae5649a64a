package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Sources that can be put to the test.
const (
	kafkaSource   = "kafka"
	kinesisSource = "kinesis"
)

const streamFile = `job: %s
parallelism: %d
source:
  kinesis:
    stream: %s
    region: us-east-1
    endpoint: %q
    credentials: {access_key_id: crash, secret_access_key: crash}
    poll_interval: 200ms
    discovery_interval: 1s%s
sink:
  file: {path: %s, format: jsonl}
checkpoint: {dir: %s, interval: %s, keep: 3}
`

// given are the flags that were.
func given(flags *flag.FlagSet) map[string]bool {
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	return set
}

// runKinesis is the program with a stream as source. Lives are longer by default than those of a topic's reader: a shard gives five pages a second, whoever
// asks, and a life that begins after a kill inherits what is left of them.
func runKinesis(ctx context.Context, c config, given map[string]bool) int {
	for name, d := range map[string]struct {
		is *time.Duration
		by time.Duration
	}{"interval": {&c.interval, 300 * time.Millisecond}, "longest": {&c.longest, 3 * time.Second}} {
		if !given[name] {
			*d.is = d.by
		}
	}
	if !given["kills"] {
		c.kills = 10
	}
	r, err := crashKinesis(ctx, c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "crash: %v\n  Repeat it with: go run ./conformance/crash %s\n", err, c.flags())
		return 1
	}
	fmt.Println(r)
	return 0
}

// reshardings are to how many shards a stream of two goes, one after the other. The last takes two generations, as a split makes two of one.
var reshardings = []int{4, 2, 8}

// moreBatches are written after the last resharding, so that the youngest shards have records too.
const moreBatches = 10

// longestPause bounds the random time before each step of a resharding.
const longestPause = 400 * time.Millisecond

// crashKinesis kills the command while it reads a stream that is written and resharded. On success it leaves nothing behind.
func crashKinesis(ctx context.Context, c config) (lineageReport, error) {
	dir, err := os.MkdirTemp("", "penstock-crash-")
	if err != nil {
		return lineageReport{}, err
	}
	if c.penstock == "" {
		c.penstock = filepath.Join(dir, "penstock")
		if err := build(ctx, c.penstock); err != nil {
			return lineageReport{}, err
		}
	}
	r, err := c.kinesisIn(ctx, dir)
	if err == nil {
		err = r.check(1 + len(reshardings))
	}
	if err != nil {
		return r, fmt.Errorf("%w (seed %d; everything is in %s)", err, c.seed, dir)
	}
	return r, os.RemoveAll(dir)
}

func (c config) kinesisIn(ctx context.Context, dir string) (lineageReport, error) {
	endpoint, stop, err := c.startKinesis(ctx)
	if err != nil {
		return lineageReport{}, err
	}
	defer stop()
	load, err := newCrowd(ctx, endpoint)
	if err != nil {
		return lineageReport{}, fmt.Errorf("make the stream: %w", err)
	}
	run := &streamRun{config: c, dir: dir, endpoint: endpoint, crowd: load, rng: rand.New(rand.NewPCG(c.seed, 0))} //nolint:gosec // a schedule to repeat, no secret
	if err := run.all(ctx); err != nil {
		return lineageReport{}, err
	}
	written, _ := load.counts()
	r, err := verifyLineage(filepath.Join(dir, "out"), written)
	r.kills, r.reshardings = c.kills, len(reshardings)
	return r, err
}

// streamRun is the time in which the stream is written.
type streamRun struct {
	config
	dir, endpoint string
	crowd         *crowd
	rng           *rand.Rand
}

// all writes, reshards and kills at the same time, and returns when everything that was written is committed and the command has ended.
func (r *streamRun) all(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	writing, enough := context.WithCancel(ctx)
	defer enough()
	var background sync.WaitGroup
	background.Go(func() {
		if err := r.crowd.write(writing); err != nil {
			cancel(err)
		}
	})
	defer func() {
		enough()
		background.Wait()
	}()
	log, err := os.Create(filepath.Join(r.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()

	changed := make(chan struct{}) // closed when the last resharding is done
	turns := make(chan int, len(reshardings))
	background.Go(func() {
		defer close(changed)
		if err := r.change(ctx, turns, rand.New(rand.NewPCG(r.seed, 1))); err != nil { //nolint:gosec // a schedule to repeat, no secret
			cancel(err)
		}
	})
	if err := r.kill(ctx, log, turns); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return r.last(ctx, log, func() error {
		select {
		case <-changed:
		case <-ctx.Done():
		}
		if err := pause(ctx, moreBatches*batchEvery); err != nil {
			return err
		}
		enough()
		background.Wait()
		return context.Cause(ctx)
	})
}

// change reshards whenever it is told to how many shards.
func (r *streamRun) change(ctx context.Context, turns <-chan int, rng *rand.Rand) error {
	between := func(ctx context.Context) error { return pause(ctx, time.Duration(rng.Int64N(int64(longestPause)))) }
	for range reshardings {
		select {
		case <-ctx.Done():
			return nil
		case want := <-turns:
			if err := r.crowd.reshard(ctx, want, between); err != nil {
				return err
			}
			r.say("%d shards", want)
		}
	}
	return nil
}

// kill lets the command live and die. The reshardings are spread over the lives.
func (r *streamRun) kill(ctx context.Context, log *os.File, turns chan<- int) error {
	begun := 0
	due := func(kills int) {
		for begun < len(reshardings) && kills*(len(reshardings)+1) >= (begun+1)*r.kills {
			turns <- reshardings[begun]
			begun++
		}
	}
	refused := 0
	for kills := 0; kills < r.kills; {
		due(kills)
		file, err := r.writeStreamJob()
		if err != nil {
			return err
		}
		ended, err := one(ctx, r.penstock, file, log, r.moment(ctx, r.rng, filepath.Join(r.dir, "state")))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && r.servers == real && refused < maxRefused:
			refused++ // a busy emulator lets calls time out; whoever runs the command starts it again
			r.say("life %d: %v", kills+1, err)
			if err := pause(ctx, startPause); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("life %d: %w", kills+1, err)
		case ended:
			return fmt.Errorf("life %d: the command ended by itself", kills+1)
		}
		kills++
		_, written := r.crowd.counts()
		r.say("killed %d times, %d records written", kills, written)
	}
	due(r.kills)
	return nil
}

// last is the life that is not killed: it is asked to end when everything is committed. enough ends the writing.
func (r *streamRun) last(ctx context.Context, log *os.File, enough func() error) error {
	file, err := r.writeStreamJob()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lastLife)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.penstock, "run", file)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = enough()
	if err == nil {
		err = r.committed(ctx, ended)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("the last life: %w: %s", err, tail(log.Name()))
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("the last life: %w: %s", err, tail(log.Name()))
	}
	return nil
}

// committed returns when the visible files have as many lines as records were written: what is more, and what is wrong, shows afterwards.
func (r *streamRun) committed(ctx context.Context, ended <-chan error) error {
	lines := map[string]int{}
	_, want := r.crowd.counts()
	for sum := 0; ; {
		names, err := committedFiles(filepath.Join(r.dir, "out"))
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, known := lines[name]; known { // a visible file never changes again
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			lines[name] = bytes.Count(b, []byte{'\n'})
			sum += lines[name]
		}
		if sum >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d records are committed: %w", sum, want, context.Cause(ctx))
		case err := <-ended:
			return fmt.Errorf("the command ended by itself: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *streamRun) writeStreamJob() (file string, err error) {
	parallelism := 2
	if r.rescale {
		parallelism = 1 + r.rng.IntN(4)
	}
	more := ""
	if r.efo {
		more = "\n    efo: {consumer: crash}"
	}
	file = filepath.Join(r.dir, "job.yaml")
	text := fmt.Sprintf(streamFile, stream, parallelism, stream, r.endpoint, more, filepath.Join(r.dir, "out"), filepath.Join(r.dir, "state"), r.interval)
	return file, os.WriteFile(file, []byte(text), 0o600)
}
