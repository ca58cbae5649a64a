//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
)

// The test binary is also the program that these tests run; its role is in the environment.
const (
	roleVar    = "PROCESS_TEST_ROLE"
	addressVar = "PROCESS_TEST_ADDRESS"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "": // the tests
		os.Exit(m.Run())
	case "report": // says where it runs, and ends
		dir, _ := os.Getwd()
		fmt.Println("out", dir)
		fmt.Fprintln(os.Stderr, "err", os.Getenv(addressVar))
		os.Exit(3)
	case "connect": // holds a connection for as long as it lives
		connect()
	case "parent": // has a child that does, in its own group
		child := exec.Command(os.Args[0]) //nolint:noctx // it lives as long as its group
		child.Env = append(os.Environ(), roleVar+"=connect")
		fmt.Fprintln(os.Stderr, child.Run())
	case "guardian": // has started such a program with this package
		p, err := process.Start(command("connect", os.Getenv(addressVar), os.DevNull))
		if err != nil {
			panic(err)
		}
		<-p.Exited()
	}
}

func connect() {
	conn, err := net.Dial("tcp", os.Getenv(addressVar)) //nolint:noctx // to a listener of the test
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, conn)
}

func command(role, address, log string) process.Command {
	return process.Command{Program: os.Args[0], Env: []string{roleVar + "=" + role, addressVar + "=" + address}, Log: log}
}

// start runs a program and returns the connection of whoever connects. The connection ends when that one does.
func start(t *testing.T, role string) (*process.Process, net.Conn) {
	t.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := process.Start(command(role, l.Addr().String(), filepath.Join(t.TempDir(), "log")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End() })
	stop := context.AfterFunc(t.Context(), func() { l.Close() })
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return p, conn
}

// awaitEnd returns when the other side of conn has died.
func awaitEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if n, err := conn.Read(b[:]); n > 0 || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v, want the end of a process that died", n, err)
	}
}

// awaitFrozen returns when the system says that p is stopped. Only Linux tells without being its parent.
func awaitFrozen(t *testing.T, p *process.Process) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for limit := time.After(time.Minute); ; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "T") {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("it is not frozen: %s", stat)
		}
	}
}

func TestAProgramRunsWhereItIsToldToAndSaysHowItEnded(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := command("report", "here", filepath.Join(dir, "log"))
	c.Dir = dir
	for range 2 { // the second one's output is appended
		p, err := process.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Exited()
		if exit, ok := errors.AsType[*exec.ExitError](p.Err()); !ok || exit.ExitCode() != 3 || p.Running() {
			t.Errorf("ended with %v, want exit code 3", p.Err())
		}
		if err := errors.Join(p.Signal(process.Terminate), p.End(), p.End()); err != nil {
			t.Errorf("ended again: %v", err)
		}
	}
	log, err := os.ReadFile(c.Log)
	if want := strings.Repeat(fmt.Sprintf("out %s\nerr here\n", dir), 2); err != nil || string(log) != want {
		t.Errorf("log %q, %v, want %q", log, err, want)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := process.Start(process.Command{Program: filepath.Join(dir, "missing"), Log: filepath.Join(dir, "log")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := process.Start(process.Command{Program: os.Args[0], Log: filepath.Join(dir, "missing", "log")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log in a folder that is not there: %v", err)
	}
}

func TestSignalsReachWhatTheProgramStarted(t *testing.T) {
	t.Parallel()
	for _, s := range []process.Signal{process.Kill, process.Terminate} {
		p, conn := start(t, "parent")
		if err := p.Signal(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		awaitEnd(t, conn)
		<-p.Exited()
		exit, ok := errors.AsType[*exec.ExitError](p.Err())
		if want := map[process.Signal]syscall.Signal{process.Kill: syscall.SIGKILL, process.Terminate: syscall.SIGTERM}[s]; !ok ||
			exit.Sys().(syscall.WaitStatus).Signal() != want {
			t.Errorf("%s: it ended with %v", s, p.Err())
		}
	}
}

func TestAFrozenProgramGoesOnOrIsKilled(t *testing.T) {
	t.Parallel()
	p, conn := start(t, "connect")
	if err := p.Signal(process.Freeze); err != nil {
		t.Error(err)
	}
	awaitFrozen(t, p)
	// Asked to end while it is frozen, it does so when it goes on.
	if err := errors.Join(p.Signal(process.Terminate), p.Signal(process.Continue)); err != nil {
		t.Error(err)
	}
	awaitEnd(t, conn)

	p, conn = start(t, "connect")
	if err := errors.Join(p.Signal(process.Freeze), p.End()); err != nil {
		t.Errorf("killed while frozen: %v", err)
	}
	awaitEnd(t, conn)
}

// A test binary that is killed cannot clean up.
func TestAProgramDiesWithWhoeverStartedIt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can")
	}
	guardian, conn := start(t, "guardian")
	if err := guardian.End(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, conn) // in a group of its own, so it was not our signal
}

func TestALockIsHeldByOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := process.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := process.Lock(ctx, path); !errors.Is(err, enough) {
		t.Errorf("a second lock: %v, want it to wait until the context ended", err)
	}
	second := make(chan error)
	go func() {
		again, err := process.Lock(t.Context(), path)
		if err == nil {
			again()
		}
		second <- err
	}()
	unlock()
	if err := <-second; err != nil {
		t.Errorf("after the unlock: %v", err)
	}
	if _, err := process.Lock(t.Context(), filepath.Join(path, "missing")); err == nil {
		t.Error("a lock in a folder that is not there")
	}
}
