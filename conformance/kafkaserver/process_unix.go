//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	sigKill = syscall.SIGKILL
	sigTerm = syscall.SIGTERM
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// supported is nil where processes can be controlled as this package does.
var supported error

// signal sends to the process group, which is the process and whatever it started. A group that has ended is no error.
func (p *process) signal(s syscall.Signal) error {
	if !p.running() {
		return nil
	}
	if err := syscall.Kill(-p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kafkaserver: signal %s to process %d: %w", s, p.pid, err)
	}
	return nil
}

// lockFile takes an exclusive lock and waits for it. The lock ends with unlock, and with this process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, os.NewSyscallError("flock", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		}
	}
}
