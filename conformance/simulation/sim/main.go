package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// pkg is the package whose tests are run.
const pkg = "github.com/penstock-dev/penstock/conformance/simulation"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	seeds, processes, twice int
	first, seed             uint64
	without, cache          string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("sim", flag.ContinueOnError)
	f.IntVar(&o.seeds, "seeds", 1000, "how many seeds")
	f.Uint64Var(&o.first, "first", 1, "first seed")
	f.IntVar(&o.processes, "processes", runtime.NumCPU(), "how many seeds at the same time")
	f.IntVar(&o.twice, "twice", 20, "simulate every so many seeds twice, and compare; 0 for none")
	f.Uint64Var(&o.seed, "seed", 0, "this seed alone, with its history")
	f.StringVar(&o.without, "without", "", "what to take out of the plan of -seed")
	f.StringVar(&o.cache, "cache", filepath.Join(".cache", "sim"), "folder for the edited runtime and the test binary")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.seeds < 1 || o.processes < 1 {
		return o, fmt.Errorf("-seeds %d -processes %d: both are at least 1", o.seeds, o.processes)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	binary, err := build(ctx, o.cache, out)
	if err != nil {
		return err
	}
	if o.seed != 0 {
		return start(ctx, binary, out, "-test.run=^TestSeeds$", fmt.Sprintf("-seed=%d", o.seed), "-without="+o.without)
	}
	n := min(o.processes, o.seeds)
	errs := make([]error, n+1)
	var wg sync.WaitGroup
	shared := &lines{to: out}
	for i := range n {
		wg.Go(func() {
			share := (o.seeds - i + n - 1) / n
			errs[i] = start(ctx, binary, shared, "-test.run=^TestSeeds$", fmt.Sprintf("-seeds=%d", share),
				fmt.Sprintf("-first=%d", o.first+uint64(i)), fmt.Sprintf("-stride=%d", n), fmt.Sprintf("-twice=%d", o.twice))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// build compiles the tests of package simulation with the edited runtime. The first time, that compiles the standard library too.
func build(ctx context.Context, cache string, out io.Writer) (binary string, err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return "", err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	overlay, err := writeOverlay(strings.TrimSpace(string(root)), cache)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(cache, "simulation.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags=seeded", "-overlay="+overlay, "-o", binary, pkg)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("compiling the simulation with the edited runtime: %w", err)
	}
	return binary, nil
}

// start runs the test binary on one processor.
func start(ctx context.Context, binary string, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, binary, append(args, "-test.v", "-test.timeout=0")...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// lines passes on whole lines of several processes, without what says only that a test runs.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		if !strings.HasPrefix(line, "=== ") {
			if _, err := io.WriteString(l.to, line); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}
