//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// tryLock fails: two processes in one state directory would lose records, so without a lock there is no store.
func tryLock(*os.File) (bool, error) {
	return false, fmt.Errorf("locking a state directory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
