//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const supported = true

var signals = [...]syscall.Signal{Kill: syscall.SIGKILL, Terminate: syscall.SIGTERM, Freeze: syscall.SIGSTOP, Continue: syscall.SIGCONT}

// signal sends to the group. One that has ended meanwhile is no error.
func (p *Process) signal(s Signal) error {
	if err := syscall.Kill(-p.pid, signals[s]); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// lockedAgain is how often a lock that somebody else holds is asked for.
const lockedAgain = 100 * time.Millisecond

// Lock takes an exclusive lock on a file, which it makes when there is none, and waits for it until ctx ends. The lock ends with
// unlock, or with this process; the file stays.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	again := time.NewTicker(lockedAgain)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("process: lock %s: %w", path, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("process: lock %s: %w", path, context.Cause(ctx))
		}
	}
}
