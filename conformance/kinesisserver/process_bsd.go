//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package kinesisserver

import "syscall"

// ownGroup cannot tie the life of the program to this process here: after a kill -9 of a test its server must be stopped by hand.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
