package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Command says what to run.
type Command struct {
	Program string // a path, or a name on the PATH
	Args    []string
	Dir     string   // working directory; empty is this process's
	Env     []string // NAME=value, added to this process's environment
	Log     string   // path of the file that standard output and error are appended to
}

// Process is a program that was started. Methods may be called from any goroutine.
type Process struct {
	pid    int
	exited chan struct{} // closed when it has ended and is reaped
	err    error         // valid once exited is closed
}

// Signal is what a process can be sent.
type Signal uint8

// The signals. They go to the whole process group.
const (
	Kill      Signal = iota // ends it at once, as a crash does, also when it is frozen
	Terminate               // asks it to end
	Freeze                  // stops it: its connections stay open and nothing answers
	Continue                // lets a frozen one go on
)

func (s Signal) String() string { return [...]string{"kill", "terminate", "freeze", "continue"}[s] }

// Start runs a program. On Linux it dies with this process: the kernel sends the signal when the thread ends that started it,
// so one goroutine keeps that thread for as long as the program runs.
func Start(c Command) (*Process, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), c.Program, c.Args...) // it lives until it ends or is ended
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = ownGroup()
	p := &Process{exited: make(chan struct{})}
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
		return nil, fmt.Errorf("process: start %s: %w", c.Program, err)
	}
	return p, nil
}

// PID is the number of the process, and of its group.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the process has ended. What it started may live on; see [Process.End].
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Err is how the process ended: nil for exit code 0, and while it runs.
func (p *Process) Err() error {
	if p.Running() {
		return nil
	}
	return p.err
}

// Signal sends s to the process and whatever it started. One that has ended is sent nothing, which is no error: its number may
// be somebody else's by now.
func (p *Process) Signal(s Signal) error {
	if !p.Running() {
		return nil
	}
	if err := p.signal(s); err != nil {
		return fmt.Errorf("process: %s %d: %w", s, p.pid, err)
	}
	return nil
}

// End kills the process and what it started, and returns when it is gone. It may be called again.
func (p *Process) End() error {
	if err := p.Signal(Kill); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Supported says why nothing can be started on this system; nil where it can.
func Supported() error {
	if supported {
		return nil
	}
	return fmt.Errorf("process: programs cannot be controlled on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
