package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// life is a program that is killed with SIGKILL and started again.
type life struct {
	start func(ctx context.Context, number int) (*exec.Cmd, error)
	// taken is how many records the program has taken since it was started.
	taken func(ctx context.Context) (int, error)
	// output is what is there to be seen of all lives.
	output func() (seen, error)
}

// restart compares Penstock, writing files, with a consumer group of the bare client that notes what it gets in a file.
func restart(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("restart", flag.ContinueOnError)
	c := content{Codec: "none"}
	flags.IntVar(&c.Records, "records", 2_000_000, "how many the topic holds")
	flags.IntVar(&c.Size, "size", 100, "bytes of a value")
	interval := flags.Duration("interval", 5*time.Second, "between checkpoints, or commits")
	binary := flags.String("penstock", "", "the `binary` to measure; built when empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newPenstock(ctx, *binary, dir)
	if err != nil {
		return err
	}
	broker, stop, err := startBroker(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("%d records; killed with SIGKILL %s after the first record; checkpoints or commits every %s\n\n", c.Records, *interval*3/2, *interval)
	fmt.Println("| reader | first record after the restart, s | repeated | lost |")
	fmt.Println("|---|---|---|---|")
	penstockLife, err := p.life(broker, *interval)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		text string
		life
	}{{"Penstock, JSON lines to files", penstockLife}, {"franz-go, consumer group, autocommit", groupLife(broker, dir, *interval)}} {
		after, got, err := l.killed(ctx, *interval*3/2, c.Records)
		if err != nil {
			return fmt.Errorf("%s: %w", l.text, err)
		}
		fmt.Printf("| %s | %.2f | %d | %d |\n", l.text, after.Seconds(), got.repeated, c.Records-got.different)
	}
	return nil
}

// pace is how many records a second are read before the kill.
const pace = 100_000

// killed lets the program read for a while, kills it, and starts it again until everything is there.
func (l life) killed(ctx context.Context, after time.Duration, want int) (first time.Duration, got seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd, err := l.start(ctx, 1)
	if err != nil {
		return 0, got, err
	}
	if err := until(ctx, func() (bool, error) { n, err := l.taken(ctx); return n > 0, err }); err != nil {
		return 0, got, err
	}
	began := time.Now()
	if err := until(ctx, func() (bool, error) { return time.Since(began) > after, nil }); err != nil {
		return 0, got, err
	}
	if err := cmd.Process.Kill(); err != nil {
		return 0, got, err
	}
	_ = cmd.Wait() // it was killed
	began = time.Now()
	if cmd, err = l.start(ctx, 2); err != nil {
		return 0, got, err
	}
	if err := until(ctx, func() (bool, error) { n, err := l.taken(ctx); return n > 0, err }); err != nil {
		return 0, got, err
	}
	first = time.Since(began)
	err = until(ctx, func() (bool, error) {
		got, err = l.output()
		return got.different >= want, err
	})
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	return first, got, err
}

// until asks a hundred times a second.
func until(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *penstock) life(broker string, interval time.Duration) (life, error) {
	slow, err := p.job(broker, toFiles, "records_per_second: "+strconv.Itoa(pace))
	if err != nil {
		return life{}, err
	}
	file := slow.command[len(slow.command)-1]
	address, err := freeAddress()
	if err != nil {
		return life{}, err
	}
	return life{
		start: func(ctx context.Context, number int) (*exec.Cmd, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			job := strings.ReplaceAll(string(text), "interval: 5s", "interval: "+interval.String())
			if number > 1 {
				job = strings.ReplaceAll(job, ", records_per_second: "+strconv.Itoa(pace), "")
			}
			if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
				return nil, err
			}
			cmd := exec.CommandContext(ctx, p.binary, "run", file, "--metrics", address)
			return cmd, cmd.Start()
		},
		taken: func(ctx context.Context) (int, error) {
			n, err := counter(ctx, "http://"+address+"/metrics", "penstock_sink_records_total")
			if err != nil {
				return 0, nil // it is not up yet
			}
			return int(n), nil
		},
		output: func() (seen, error) { return linesIn(filepath.Join(filepath.Dir(file), "out")) },
	}, nil
}

// groupLife notes each record in a file.
func groupLife(broker, dir string, interval time.Duration) life {
	noted := filepath.Join(dir, "noted")
	before := 0
	return life{
		start: func(ctx context.Context, number int) (*exec.Cmd, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			if number > 1 {
				now, err := notesIn(noted)
				if err != nil {
					return nil, err
				}
				before = now.all
			}
			rate := pace
			if number > 1 {
				rate = 0
			}
			cmd := exec.CommandContext(ctx, self, "-note", "-broker", broker, "-file", noted, "-pace", strconv.Itoa(rate), "-interval", interval.String())
			return cmd, cmd.Start()
		},
		taken: func(context.Context) (int, error) {
			now, err := notesIn(noted)
			return now.all - before, err
		},
		output: func() (seen, error) { return notesIn(noted) },
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only to find a port that is free
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
