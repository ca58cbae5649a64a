package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// folder is the output directory. Names are plain, without any path. It exists as an interface so that tests can make each
// single step fail, or be the last one before a crash.
type folder interface {
	// Create makes a new file; it fails when the name exists.
	Create(name string) (handle, error)
	ReadFile(name string) ([]byte, error)
	Lstat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	// List returns the names in the directory.
	List() ([]string, error)
	// Sync makes created, renamed and removed names durable.
	Sync() error
	// Lock keeps other processes from writing the output of the job here, until Close.
	Lock(job string) error
	Close() error
}

type handle interface {
	io.WriteCloser
	Sync() error
}

// rootFolder keeps the directory open: it stays the same one when its path is renamed, and no name leads out of it.
type rootFolder struct {
	root *os.Root
	path string
	lock *lock // nil before Lock
}

const (
	dirMode  = 0o755
	fileMode = 0o644
)

func openRoot(path string) (folder, error) {
	if err := os.MkdirAll(path, dirMode); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &rootFolder{root: root, path: path}, nil
}

func (f *rootFolder) Create(name string) (handle, error) {
	return f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
}

func (f *rootFolder) ReadFile(name string) ([]byte, error)   { return f.root.ReadFile(name) }
func (f *rootFolder) Lstat(name string) (fs.FileInfo, error) { return f.root.Lstat(name) }
func (f *rootFolder) Rename(from, to string) error           { return f.root.Rename(from, to) }
func (f *rootFolder) Remove(name string) error               { return f.root.Remove(name) }

func (f *rootFolder) List() ([]string, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read
	return dir.Readdirnames(-1)
}

func (f *rootFolder) Sync() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // only read
	return dir.Sync()
}

func (f *rootFolder) Lock(job string) (err error) {
	f.lock, err = acquire(f.path, job)
	return err
}

func (f *rootFolder) Close() error {
	err := f.root.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.release())
		f.lock = nil
	}
	return err
}
