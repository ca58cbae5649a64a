//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import "syscall"

// ownGroup cannot tie the life of the program to this process here.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
