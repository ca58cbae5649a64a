package base

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

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
