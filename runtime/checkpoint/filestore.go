package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

var _ Storage = (*FileStore)(nil)

const lockFile = "lock"

// FileStore is the [Storage] of a state directory. One process at a time has it open.
type FileStore struct {
	dir     Dir
	job     string
	release func() error

	// busy holds a token while somebody changes the directory or the fields below. A token and not a mutex, because it is
	// held across I/O and whoever waits for it must be able to give up.
	busy     chan struct{}
	closed   bool
	newest   sdk.CheckpointID  // highest number of a stored checkpoint
	given    protocol.Counters // what the next call hands out
	reserved protocol.Counters // what the counters file says: given never passes it
}

// FileOptions of a [FileStore].
type FileOptions struct {
	// Job is the job's name. It is recorded in a new directory, and an existing one must have the same.
	Job string
	// Now is the wall clock that dates the lock; nil means time.Now.
	Now func() time.Time
}

// Open opens the state directory at path and creates it if need be. The directory is locked until Close, or the end of the
// process.
func Open(ctx context.Context, path string, o FileOptions) (*FileStore, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, err
	}
	s, err := OpenDir(ctx, dir, o)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return s, nil
}

// OpenDir is [Open] for a [Dir] of any kind, which the store closes.
func OpenDir(ctx context.Context, dir Dir, o FileOptions) (*FileStore, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	release, err := dir.Lock(lockFile, Holder{PID: os.Getpid(), Host: host, Job: o.Job, Since: o.Now()})
	if err != nil {
		if errors.Is(err, ErrLocked) {
			return nil, err
		}
		return nil, &DirError{Path: filepath.Join(dir.Path(), lockFile), Op: "lock", Err: err}
	}
	s := &FileStore{dir: dir, job: o.Job, release: release, busy: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, release())
	}
	return s, nil
}

// load reads what the directory holds, and removes what a crashed run left half written.
func (s *FileStore) load() error {
	// What an earlier run renamed just before it crashed is seen now and could still vanish with the machine. Nothing may
	// be built on it before it is durable.
	if err := s.dir.Sync(); err != nil {
		return s.dirError("sync", "", err)
	}
	entries, err := s.dir.List()
	if err != nil {
		return s.dirError("list", "", err)
	}
	for _, e := range entries {
		id, _, temporary, ok := parseName(e.Name)
		switch {
		case ok && temporary, e.Name == tempName(countersFile):
			if err := s.dir.Remove(e.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return s.dirError("remove", e.Name, err)
			}
		case ok:
			s.newest = max(s.newest, id)
		}
	}
	return s.loadCounters()
}

// Write implements [Storage].
func (s *FileStore) Write(ctx context.Context, m *protocol.Manifest) (Info, error) {
	data, err := encodeFile(m)
	if err != nil {
		return Info{}, fmt.Errorf("write checkpoint %d: %w", m.ID, err)
	}
	if err := s.acquire(ctx); err != nil {
		return Info{}, fmt.Errorf("write checkpoint %d: %w", m.ID, err)
	}
	defer s.done()
	switch {
	case m.Job != s.job:
		return Info{}, fmt.Errorf("write checkpoint %d: %w: it is of job %q, the directory of %q", m.ID, ErrOtherJob, m.Job, s.job)
	case m.ID <= s.newest:
		return Info{}, fmt.Errorf("write checkpoint %d: the directory has checkpoint %d already, and numbers only grow", m.ID, s.newest)
	}
	name := fileName(m.ID, savepoint(m.Kind))
	if err := s.replace(name, data); err != nil {
		return Info{}, fmt.Errorf("write checkpoint %d: %w", m.ID, err)
	}
	s.newest = m.ID
	s.given.NextCheckpoint = max(s.given.NextCheckpoint, m.ID+1)
	return Info{
		ID: m.ID, Savepoint: savepoint(m.Kind), Path: s.path(name), Size: int64(len(data)), Modified: m.Completed,
		State: Usable, Job: m.Job, Kind: m.Kind, Completed: m.Completed,
	}, nil
}

// replace gives name this content, durably and in one step. When it fails before the rename, nothing has changed. From the
// rename on it is undone for new files, and what cannot be undone is [ErrUncertain].
func (s *FileStore) replace(name string, data []byte) error {
	temp := tempName(name)
	if err := s.writeTemp(temp, data); err != nil {
		// An orphan costs space and is removed by the next start; the error that counts is the first.
		_ = s.dir.Remove(temp)
		return err
	}
	if err := s.dir.Rename(temp, name); err != nil {
		return s.undo(name, s.dirError("rename", temp, err))
	}
	if err := s.dir.Sync(); err != nil {
		return s.undo(name, s.dirError("sync", "", err))
	}
	return nil
}

func (s *FileStore) writeTemp(temp string, data []byte) error {
	f, err := s.dir.Create(temp)
	if err != nil {
		return s.dirError("create", temp, err)
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return s.dirError("write", temp, err)
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return s.dirError("sync", temp, err)
	}
	if err := f.Close(); err != nil {
		return s.dirError("close", temp, err)
	}
	return nil
}

// undo makes sure that a file whose rename or directory sync failed is not there, or says that nobody knows. The counters
// need no undoing: both their contents are true.
func (s *FileStore) undo(name string, cause error) error {
	if name == countersFile {
		return cause
	}
	for _, file := range []string{name, tempName(name)} {
		if err := s.dir.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", ErrUncertain, errors.Join(cause, s.dirError("remove", file, err)))
		}
	}
	if err := s.dir.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, errors.Join(cause, s.dirError("sync", "", err)))
	}
	return cause
}

// Close implements [Storage]. It gives numbers that were reserved and not used back, as far as the disk allows.
func (s *FileStore) Close() error {
	s.busy <- struct{}{}
	defer s.done()
	if s.closed {
		return nil
	}
	s.closed = true
	// Losing this costs some unused numbers.
	_ = s.writeCounters(s.given)
	return errors.Join(s.release(), s.dir.Close())
}

// acquire waits for the turn to change something.
func (s *FileStore) acquire(ctx context.Context) error {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.closed {
		s.done()
		return fmt.Errorf("%w: %s", ErrStoreClosed, s.dir.Path())
	}
	if err := context.Cause(ctx); err != nil {
		s.done()
		return err
	}
	return nil
}

func (s *FileStore) done() { <-s.busy }

func (s *FileStore) path(name string) string { return filepath.Join(s.dir.Path(), name) }

func (s *FileStore) dirError(op, name string, err error) error {
	return &DirError{Path: s.path(name), Op: op, Err: err}
}
