package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

var (
	// ErrDataMissing means that a file which a checkpoint refers to is neither prepared nor ever was committed: the output cannot
	// be completed. The engine must not go on from that checkpoint.
	ErrDataMissing = errors.New("prepared data is missing")

	// ErrDataChanged means that a prepared file has not the size it was prepared with.
	ErrDataChanged = errors.New("prepared data was changed")

	// ErrExists means that a final name is taken by a file that this job's state knows nothing of.
	ErrExists = errors.New("a file of that name exists already")

	// ErrOtherRun means that the directory holds output committed by a later or another run of the same job: going on would write
	// the same records again.
	ErrOtherRun = errors.New("output of another run")

	// ErrManifest marks prepared bytes that this build cannot read.
	ErrManifest = errors.New("unreadable manifest")
)

// Error says which operation on which path failed, and what to do. It wraps the operating system's error, or one of this package's.
type Error struct {
	Op     string // for example "write"
	Path   string
	Err    error
	Remedy string // a sentence for a person; may be empty
}

func (e *Error) Error() string {
	// The system's errors repeat operation and path, and the name is relative to the directory: keep only the reason.
	reason := e.Err
	if p, ok := errors.AsType[*fs.PathError](reason); ok {
		reason = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](reason); ok {
		reason = l.Err
	}
	text := fmt.Sprintf("file sink: %s %s: %v", e.Op, e.Path, reason)
	if e.Remedy != "" {
		text += ". " + e.Remedy
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// failure makes an [Error] with the remedy that its cause asks for.
func failure(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Err: err, Remedy: remedy(err)}
}

func remedy(err error) string {
	switch {
	case errors.Is(err, ErrInUse):
		return "A job of the same name runs there: stop it, or choose another path or name"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "Free space there or move the output; the job goes on from its last checkpoint"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "Let the user of this process write there, or choose another path"
	case errors.Is(err, syscall.ENOTDIR):
		return "Something that is no directory stands in the way: remove it or choose another path"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "Raise the limit of open files (ulimit -n): each sink task keeps one or two open"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "Use a shorter job name"
	default:
		return ""
	}
}
