package kafkaserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one that was started and not yet waited for by anybody else.
type process struct {
	pid    int
	exited chan struct{} // closed when it has ended and is reaped
	err    error         // how it ended; valid once exited is closed
}

// spawn starts a program in a process group of its own, with its output appended to a file. On Linux the program dies with this process,
// however that ends: the kernel sends the signal when the thread ends that started it, so one goroutine keeps that thread
// for as long as the program runs.
func spawn(logPath, dir, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), program, args...) // it lives until Close
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = ownGroup()
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
		_ = log.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("kafkaserver: start %s: %w", program, err)
	}
	return p, nil
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
