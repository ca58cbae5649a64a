package connector

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// PanicError is a panic of connector code, caught at the border. Stack is for the log, never for an error message.
type PanicError struct {
	Where string // the call
	At    string // file and line
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked at %s: %v", e.Where, e.At, e.Value)
}

// Unwrap gives access to an error that was the panic's value.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Guard calls f and turns a panic into a [PanicError].
func Guard(where string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Where: where, At: site(), Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// site is where the panic happened that is being recovered, as "folder/file.go:45". It is called by the deferred function.
func site() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for panicked := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(frame.Function, "runtime."):
			folder, file := filepath.Split(frame.File)
			return fmt.Sprintf("%s/%s:%d", filepath.Base(folder), file, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
