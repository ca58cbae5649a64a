package kinesisserver

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
}

// spawn starts a program in a process group of its own, with its output written to a file. On Linux the program dies with this process, however that ends: the
// kernel sends the signal when the thread ends that started it, so one goroutine keeps that thread for as long as the program runs.
func spawn(logPath, dir string, env []string, program string, args ...string) (*process, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("kinesisserver: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), program, args...) // it lives until Close
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(), env...)
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
			_ = cmd.Wait() // it is killed, or its log says why it ended
			close(p.exited)
		}
		_ = log.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("kinesisserver: start %s: %w", program, err)
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

// end kills the process and what it started, and returns when it is gone.
func (p *process) end() {
	if p.running() {
		p.kill()
	}
	<-p.exited
}
