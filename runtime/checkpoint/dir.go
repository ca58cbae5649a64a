package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Dir is the little that a [FileStore] needs of a file system: one flat directory. Tests put one under it that crashes and
// fails on demand; see package checkpointtest.
//
// Durability is as on any disk: what was written survives a crash after File.Sync, and what was created, renamed or
// removed after Sync. Before that it may survive, entirely, in parts, or not.
type Dir interface {
	// Path is the directory's place, for messages.
	Path() string
	// Create makes or empties a file for writing.
	Create(name string) (File, error)
	// ReadFile returns a file's content. More than limit bytes are an error.
	ReadFile(name string, limit int64) ([]byte, error)
	// Rename gives a file another name, replacing what had it, in one step.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// List returns all files in any order.
	List() ([]Entry, error)
	// Sync makes names durable.
	Sync() error
	// Lock takes the directory for this process, until it ends or release is called, and leaves the holder's description
	// in the named file. When another has it the error is that file's content as a [LockedError].
	Lock(name string, holder Holder) (release func() error, err error)
	// Close releases what the value itself holds.
	Close() error
}

// File is a file being written.
type File interface {
	io.Writer
	// Sync makes the content durable. After an error the content is lost, and Sync is not to be called again.
	Sync() error
	Close() error
}

// Entry is one file of a [Dir].
type Entry struct {
	Name     string
	Size     int64
	Modified time.Time
}

// errTooLarge says that a file has more bytes than the reader takes.
var errTooLarge = errors.New("file too large")

// osDir is a [Dir] of the operating system. Nothing outside of the directory can be reached through it, also not by a
// symbolic link.
type osDir struct {
	path string
	root *os.Root
}

const (
	dirMode  = 0o750
	fileMode = 0o640
)

// openDir opens a directory and creates it if need be, durably.
func openDir(path string) (*osDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, &DirError{Path: path, Op: "open state directory", Err: err}
	}
	if err := createDir(path); err != nil {
		return nil, &DirError{Path: path, Op: "create state directory", Err: err}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, &DirError{Path: path, Op: "open state directory", Err: err}
	}
	return &osDir{path: path, root: root}, nil
}

// createDir is os.MkdirAll that syncs the directory above each one it makes.
func createDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := createDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *osDir) Path() string { return d.path }

func (d *osDir) Create(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *osDir) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// readAll reads and closes a file of at most limit bytes. Its memory is the file's size, known before anything is read.
func readAll(f *os.File, limit int64) (b []byte, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: info.Name(), Err: errors.New("not a regular file")}
	case info.Size() > limit:
		return nil, &fs.PathError{Op: "read", Path: info.Name(), Err: fmt.Errorf("%w: %d bytes, at most %d", errTooLarge, info.Size(), limit)}
	}
	b = make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // somebody cut it meanwhile; what it says about its length will tell
	}
	return b[:n], err
}

func (d *osDir) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d *osDir) Remove(name string) error { return d.root.Remove(name) }

func (d *osDir) List() ([]Entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		info, err := name.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: info.Name(), Size: info.Size(), Modified: info.ModTime()})
	}
	return entries, nil
}

func (d *osDir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *osDir) Close() error { return d.root.Close() }

// maxHolderBytes bounds what is read of a lock file.
const maxHolderBytes = 4096

// Lock locks the file itself, so the system releases it when the process dies, however it dies. The file stays: removing it
// would let two processes hold locks on two files of one name.
func (d *osDir) Lock(name string, holder Holder) (release func() error, err error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	locked, err := tryLock(f)
	if err != nil || !locked {
		lockedErr := &LockedError{Dir: d.path}
		if !locked && err == nil {
			content, readErr := io.ReadAll(io.LimitReader(f, maxHolderBytes))
			if h, ok := decodeHolder(content); ok && readErr == nil {
				lockedErr.Holder = h
			}
			err = lockedErr
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := describe(f, holder); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// describe replaces the lock file's content. Nobody depends on it, so it is not synced.
func describe(f *os.File, holder Holder) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(holder.encode(), 0)
	return err
}
