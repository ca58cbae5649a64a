//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cost is what one process took.
type cost struct {
	cpu     time.Duration // user and system
	reading time.Duration // from the first record to the last, where the program says so; else its life
	rss     int64         // bytes, at the most
}

// program is a reader: a process that reads everything and ends.
type program struct {
	command []string
	env     []string // added to that of this process
	// done, for a program that does not end by itself, returns when it has read everything, and how long that took. It is then ended with
	// SIGTERM.
	done func(context.Context) (time.Duration, error)
}

// measure runs a program to its end.
func (p program) measure(ctx context.Context) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Env = append(cmd.Environ(), p.env...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	var took time.Duration
	if p.done != nil {
		var err error
		took, err = p.done(ctx)
		if err := errors.Join(err, cmd.Process.Signal(syscall.SIGTERM)); err != nil {
			cancel()
			return cost{}, errors.Join(err, cmd.Wait())
		}
	}
	if err := cmd.Wait(); err != nil {
		text := out.String()
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(p.command, " "), err, text[max(0, len(text)-2000):])
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return cost{}, errors.New("this system does not say what a process took")
	}
	rss := int64(usage.Maxrss)
	if runtime.GOOS != "darwin" {
		rss <<= 10
	}
	if took == 0 {
		took = spoken(out.String(), time.Since(began))
	}
	return cost{cpu: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), reading: took, rss: rss}, nil
}

// spoken is how long a reader says that it read, or what else there is.
func spoken(out string, otherwise time.Duration) time.Duration {
	_, text, ok := strings.Cut(out, reading)
	if !ok {
		return otherwise
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}
