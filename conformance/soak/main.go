package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == brokerCommand {
		rate, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = serveBroker(rate)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "soak: broker:", err)
			os.Exit(1)
		}
		return
	}
	s := soak{print: func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }}
	flag.DurationVar(&s.length, "for", 30*time.Minute, "how long")
	flag.DurationVar(&s.life, "life", time.Minute, "time after which the job is stopped and started again")
	flag.DurationVar(&s.look, "look", 5*time.Second, "time between two looks at what must not grow")
	flag.DurationVar(&s.hang, "hang", 25*time.Second, "time between two stops of the broker's process, two seconds each")
	flag.IntVar(&s.rate, "rate", 20_000, "records per second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// soak is one run.
type soak struct {
	length, life, look, hang time.Duration
	rate                     int
	self                     string // the program that serves the broker; empty is this one
	print                    func(format string, args ...any)

	dir, address string
	looks        []look
	lives        int
}

func (s *soak) run(ctx context.Context) (err error) {
	if s.self == "" {
		if s.self, err = os.Executable(); err != nil {
			return err
		}
	}
	if s.dir, err = os.MkdirTemp("", "penstock-soak-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	broker, address, stop, err := startBroker(ctx, s.self, s.rate)
	if err != nil {
		return err
	}
	defer stop()
	s.address = address

	c := &consumer{dir: filepath.Join(s.dir, "out")}
	consuming, enough := context.WithCancel(ctx)
	consumed := make(chan error, 1)
	go func() { consumed <- c.follow(consuming) }()
	hanging, steady := context.WithCancel(ctx)
	hung := make(chan struct{})
	go func() { defer close(hung); s.hangs(hanging, broker) }()

	err = s.live(ctx)
	steady()
	<-hung
	enough()
	if err := errors.Join(err, <-consumed, ctx.Err()); err != nil {
		return err
	}
	s.print("%d lives of the job, %d records, each once", s.lives, c.records())
	if err := c.check(); err != nil {
		return err
	}
	return verdict(s.looks, s.print)
}

// hangs stops the broker's process for two seconds, again and again.
func (s *soak) hangs(ctx context.Context, broker *exec.Cmd) {
	const stopped = 2 * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.hang):
		}
		if broker.Process.Signal(syscall.SIGSTOP) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(stopped):
		}
		if broker.Process.Signal(syscall.SIGCONT) != nil {
			return
		}
	}
}

// live lets the job live again and again until the time is over.
func (s *soak) live(ctx context.Context) error {
	metrics := telemetry.NewRegistry("soak", telemetry.Options{})
	for end := time.Now().Add(s.length); time.Now().Before(end); s.lives++ {
		if err := s.once(ctx, metrics, 1+s.lives%3); err != nil {
			return fmt.Errorf("life %d: %w", s.lives+1, err)
		}
		if err := s.removeSavepoints(); err != nil {
			return err
		}
	}
	return nil
}

// once is one life of the job.
func (s *soak) once(ctx context.Context, metrics *telemetry.Registry, parallelism int) error {
	state := filepath.Join(s.dir, "state")
	h, err := engine.Start(ctx, engine.Job{
		Name: "soak", Parallelism: parallelism, Metrics: metrics, Exchange: exchange.Keyed,
		Source:     engine.From(&kafka.Source{Brokers: []string{s.address}, Topics: []string{topic}, Start: kafka.Earliest(), DiscoveryInterval: time.Second}),
		Sink:       file.Sink{Path: filepath.Join(s.dir, "out"), Format: file.Raw},
		Checkpoint: engine.Checkpoint{Dir: state, Interval: 200 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	over := time.After(s.life)
	ticker := time.NewTicker(s.look)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l, err := observe(ctx, metrics, state)
			if err != nil {
				return err
			}
			s.looks = append(s.looks, l)
			continue
		case <-over:
			h.Stop()
		case <-h.Done():
		}
		result, err := h.Wait(ctx)
		if err == nil && result.Outcome != engine.Stopped {
			err = fmt.Errorf("it ended as %v, want a savepoint", result.Outcome)
		}
		return err
	}
}

// removeSavepoints keeps the newest one, as whoever runs a job for years does.
func (s *soak) removeSavepoints() error {
	all, err := filepath.Glob(filepath.Join(s.dir, "state", "savepoint-*"))
	if err != nil || len(all) == 0 {
		return err
	}
	slices.Sort(all)
	for _, old := range all[:len(all)-1] {
		err = errors.Join(err, os.Remove(old))
	}
	return err
}
