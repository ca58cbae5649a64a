//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package kafkaserver

import (
	"context"
	"errors"
	"runtime"
	"syscall"
)

// Signals that this system does not have are never sent: supported says so before.
const (
	sigKill = syscall.Signal(9)
	sigTerm = syscall.Signal(15)
	sigStop = syscall.Signal(19)
	sigCont = syscall.Signal(18)
)

var supported error = &UnavailableError{Reason: "servers cannot be controlled on " + runtime.GOOS}

func ownGroup() *syscall.SysProcAttr { return nil }

func (p *process) signal(syscall.Signal) error { return errors.ErrUnsupported }

func lockFile(context.Context, string) (func(), error) { return nil, errors.ErrUnsupported }
