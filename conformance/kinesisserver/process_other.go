//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package kinesisserver

import (
	"context"
	"errors"
	"runtime"
	"syscall"
)

var supported error = &UnavailableError{Reason: "servers cannot be controlled on " + runtime.GOOS}

func ownGroup() *syscall.SysProcAttr { return nil }

func (p *process) kill() {}

func lockFile(context.Context, string) (func(), error) { return nil, errors.ErrUnsupported }
