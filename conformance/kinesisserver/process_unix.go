//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package kinesisserver

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// supported is nil where processes can be controlled as this package does.
var supported error

func (p *process) kill() { _ = syscall.Kill(-p.pid, syscall.SIGKILL) } // a group that has ended is no error

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
