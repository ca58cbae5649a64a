package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// FileState is what a look at a checkpoint file found.
type FileState uint8

// States of files.
const (
	Unread        FileState = iota // nobody looked
	Usable                         // a complete checkpoint that this build reads
	Truncated                      // shorter than it says; empty files too
	Corrupt                        // damaged
	NewerVersion                   // written by a newer build
	NotCheckpoint                  // something else under a checkpoint's name
	Misplaced                      // a good checkpoint that is not the one its name, or its directory, says
	Unreadable                     // the system refused to read it
	Unfinished                     // a temporary file: being written, or left by a crash
)

func (s FileState) String() string {
	switch s {
	case Unread:
		return "not looked at"
	case Usable:
		return "complete"
	case Truncated:
		return "truncated"
	case Corrupt:
		return "corrupt"
	case NewerVersion:
		return "from a newer version"
	case NotCheckpoint:
		return "not a checkpoint"
	case Misplaced:
		return "not what its name says"
	case Unreadable:
		return "unreadable"
	case Unfinished:
		return "unfinished"
	default:
		return fmt.Sprintf("FileState(%d)", uint8(s))
	}
}

// FileError says that a file of a state directory is not what it should be. It wraps what was found: [sdk.ErrCorrupt], an
// [sdk.UnknownVersionError], or the system's error.
type FileError struct {
	Path   string
	State  FileState
	Err    error
	Remedy string // what a person may do, as a clause
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("%s is %v: %v", e.Path, e.State, e.Err)
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return text
}

func (e *FileError) Unwrap() error { return e.Err }

// DirError says that the system refused an operation in a state directory. It wraps the system's error.
type DirError struct {
	Path string // of the file, or of the directory itself
	Op   string // what was tried, for example "write"
	Err  error
}

func (e *DirError) Error() string {
	err := e.Err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // its path is relative to the directory, ours is complete
	}
	text := fmt.Sprintf("%s %s: %v", e.Op, e.Path, err)
	if hint := remedyOf(e.Err); hint != "" {
		text += ": " + hint
	}
	return text
}

func (e *DirError) Unwrap() error { return e.Err }

// remedyOf says what a person may do about an error of the system.
func remedyOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk or quota of the state directory is full: free space, or move checkpoint.dir to another disk"
	case errors.Is(err, syscall.EROFS):
		return "the state directory is on a read-only file system: mount it writable, or choose another checkpoint.dir"
	case errors.Is(err, fs.ErrPermission):
		return "this process may not: change the owner or the mode of the state directory, or choose another checkpoint.dir"
	case errors.Is(err, syscall.EIO):
		return "the disk of the state directory fails: look at the system's log"
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is a file: choose another checkpoint.dir"
	default:
		return ""
	}
}

// LockedError says who uses a state directory. It is [ErrLocked].
type LockedError struct {
	Dir string
	// Holder is what the lock file says; its zero value means that the file could not be read.
	Holder Holder
}

func (e *LockedError) Error() string {
	by := "another process"
	if e.Holder.PID != 0 {
		by = e.Holder.String()
	}
	return fmt.Sprintf("state directory %s is in use by %s: stop that process, or choose another checkpoint.dir", e.Dir, by)
}

// Is makes a LockedError an [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Holder describes the process that uses a state directory.
type Holder struct {
	PID   int
	Host  string
	Job   string
	Since time.Time
}

func (h Holder) String() string {
	return fmt.Sprintf("process %d on %s (job %s, since %s)", h.PID, h.Host, h.Job, h.Since.UTC().Format(time.RFC3339))
}

// encode is the content of a lock file: for people, and for the message of a second process.
func (h Holder) encode() []byte {
	return fmt.Appendf(nil, "pid %d\nhost %q\njob %q\nsince %s\n", h.PID, h.Host, h.Job, h.Since.UTC().Format(time.RFC3339))
}

// decodeHolder reads a lock file. ok is false for one that is being written, or is somebody else's.
func decodeHolder(b []byte) (h Holder, ok bool) {
	var since string
	n, err := fmt.Sscanf(string(b), "pid %d\nhost %q\njob %q\nsince %s\n", &h.PID, &h.Host, &h.Job, &since)
	if err != nil || n != 4 {
		return Holder{}, false
	}
	h.Since, err = time.Parse(time.RFC3339, since)
	return h, err == nil
}
