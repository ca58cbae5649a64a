package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ErrInUse means that another process writes the output of a job of this name into the directory.
var ErrInUse = errors.New("in use by another process")

// held are the locks of this process, by path. All tasks of a job share one, and so does a task with the attempt that takes its
// place: it lasts from the first writer that opens to the last one that closes. A writer that hangs keeps it, as it should.
//
// The state directory has a lock of its own. This one is for a process that works from a copy of it: were both to commit, each
// record since the copy would be there twice.
var held = struct {
	sync.Mutex
	locks map[string]*lock
}{locks: map[string]*lock{}}

// lock is a locked file. The system gives it up when the process dies, however it dies. The file stays.
type lock struct {
	path  string
	file  *os.File // nil where the file system has no locks
	users int
}

// acquire takes the lock of a job's output, or another share of it.
func acquire(dir, job string) (*lock, error) {
	path, err := filepath.Abs(filepath.Join(dir, lockName(job)))
	if err != nil {
		return nil, err
	}
	held.Lock()
	defer held.Unlock()
	l := held.locks[path]
	if l == nil {
		l = &lock{path: path}
		if l.file, err = lockFile(path); err != nil {
			return nil, err
		}
		held.locks[path] = l
	}
	l.users++
	return l, nil
}

// release gives a share back.
func (l *lock) release() error {
	held.Lock()
	defer held.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	delete(held.locks, l.path)
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// lockFile opens and locks a file, and writes into it whose it is.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode) //nolint:gosec // a name of ours in the user's directory
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(f)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, f.Close()
	case err != nil:
		return nil, errors.Join(err, f.Close())
	case !locked:
		return nil, errors.Join(inUse(f), f.Close())
	}
	// Only people read it, so it may be torn and need not be durable.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}

// inUse says which process has the lock, if it can be told.
func inUse(f *os.File) error {
	const most = 32
	b, _ := io.ReadAll(io.LimitReader(f, most))
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return ErrInUse
	}
	return fmt.Errorf("%w, %d", ErrInUse, pid)
}
