//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package process

import (
	"context"
	"errors"
	"syscall"
)

const supported = false

func ownGroup() *syscall.SysProcAttr { return nil }

func (*Process) signal(Signal) error { return errors.ErrUnsupported }

// Lock is not supported here.
func Lock(context.Context, string) (unlock func(), err error) { return nil, Supported() }
