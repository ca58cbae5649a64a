package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// listed returns the directory's checkpoint files, by number, without reading them.
func listed(dir Dir) ([]Info, error) {
	entries, err := dir.List()
	if err != nil {
		return nil, &DirError{Path: dir.Path(), Op: "list", Err: err}
	}
	var list []Info
	for _, e := range entries {
		id, isSavepoint, temporary, ok := parseName(e.Name)
		if !ok {
			continue
		}
		info := Info{ID: id, Savepoint: isSavepoint, Path: filepath.Join(dir.Path(), e.Name), Size: e.Size, Modified: e.Modified}
		if temporary {
			info.State = Unfinished
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.State, b.State), cmp.Compare(a.Path, b.Path))
	})
	return list, nil
}

// finished drops temporary files from a list.
func finished(list []Info) []Info {
	return slices.DeleteFunc(list, func(i Info) bool { return i.State == Unfinished })
}

// examine reads the file and fills in what it says. m is nil unless the file is [Usable]. job is the name that the manifest
// must have; empty accepts any.
func examine(dir Dir, info *Info, job string) (m *protocol.Manifest) {
	name := filepath.Base(info.Path)
	data, err := dir.ReadFile(name, MaxFileBytes)
	if err != nil {
		info.State, info.Err = Unreadable, &DirError{Path: info.Path, Op: "read", Err: err}
		return nil
	}
	info.Size = int64(len(data))
	m, info.State, err = decodeFile(data)
	switch {
	case err != nil:
		info.Err = err
		return nil
	case m.ID != info.ID || savepoint(m.Kind) != info.Savepoint:
		info.State, info.Err = Misplaced, fmt.Errorf("%w: it holds %v %d", sdk.ErrCorrupt, m.Kind, m.ID)
		return nil
	case job != "" && m.Job != job:
		info.State, info.Err = Misplaced, fmt.Errorf("%w: it holds a checkpoint of job %q, not %q", ErrOtherJob, m.Job, job)
		return nil
	}
	info.Job, info.Kind, info.Completed = m.Job, m.Kind, m.Completed
	return m
}

// List reads every checkpoint file and says what it is, oldest first; temporary files are listed and not read.
func (s *FileStore) List(ctx context.Context) ([]Info, error) { return list(ctx, s.dir, s.job) }

// Inspect is [FileStore.List] for a state directory that may be in use: it takes no lock and changes nothing.
func Inspect(ctx context.Context, path string) ([]Info, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, &DirError{Path: path, Op: "open state directory", Err: err}
	}
	dir := &osDir{path: path, root: root}
	found, err := list(ctx, dir, "")
	return found, errors.Join(err, dir.Close())
}

func list(ctx context.Context, dir Dir, job string) ([]Info, error) {
	found, err := listed(dir)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if found[i].State != Unfinished {
			examine(dir, &found[i], job)
		}
	}
	// Another process may prune while we look.
	return slices.DeleteFunc(found, func(i Info) bool { return errors.Is(i.Err, fs.ErrNotExist) }), nil
}

// Latest implements [Storage].
func (s *FileStore) Latest(ctx context.Context) (*protocol.Manifest, Info, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, Info{}, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	defer s.done()
	found, err := listed(s.dir)
	if err != nil {
		return nil, Info{}, err
	}
	found = finished(found)
	if len(found) == 0 {
		return nil, Info{}, fmt.Errorf("%w in %s", ErrNoCheckpoint, s.dir.Path())
	}
	newest := &found[len(found)-1]
	m := examine(s.dir, newest, s.job)
	if m == nil {
		return nil, *newest, s.unusable(newest, found[:len(found)-1])
	}
	return m, *newest, nil
}

// unusable reports the newest file, and which older one could take its place if somebody decides so.
func (s *FileStore) unusable(newest *Info, older []Info) error {
	remedy := "--restore none starts anew"
	for i := range slices.Backward(older) {
		if examine(s.dir, &older[i], s.job) != nil {
			remedy = fmt.Sprintf("--restore PATH goes back to an older checkpoint, of which %s is the newest usable one (completed %s), and writes again what came after it; %s",
				older[i].Path, older[i].Completed.UTC().Format(time.RFC3339), remedy)
			break
		}
	}
	if newest.State == NewerVersion {
		remedy = "use the newer build that wrote it; or: " + remedy
	}
	return &FileError{Path: newest.Path, State: newest.State, Err: newest.Err, Remedy: remedy}
}

// Read implements [Storage].
func (s *FileStore) Read(ctx context.Context, id sdk.CheckpointID) (*protocol.Manifest, Info, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, Info{}, fmt.Errorf("read checkpoint %d: %w", id, err)
	}
	defer s.done()
	found, err := listed(s.dir)
	if err != nil {
		return nil, Info{}, err
	}
	found = finished(found)
	i := slices.IndexFunc(found, func(i Info) bool { return i.ID == id })
	if i < 0 {
		return nil, Info{}, fmt.Errorf("%w %d in %s", ErrNoCheckpoint, id, s.dir.Path())
	}
	m := examine(s.dir, &found[i], s.job)
	if m == nil {
		return nil, found[i], &FileError{Path: found[i].Path, State: found[i].State, Err: found[i].Err, Remedy: "choose another checkpoint"}
	}
	return m, found[i], nil
}

// ReadFile reads a checkpoint file wherever it is and whatever it is called, for a restore by path. It takes no lock.
func ReadFile(path string) (*protocol.Manifest, Info, error) {
	info := Info{Path: path}
	f, err := os.Open(path)
	if err == nil {
		var data []byte
		if data, err = readAll(f, MaxFileBytes); err == nil {
			return decodeAt(data, info)
		}
	}
	info.State, info.Err = Unreadable, err
	return nil, info, &FileError{Path: path, State: Unreadable, Err: &DirError{Path: path, Op: "read", Err: err}, Remedy: "--restore takes the path of a checkpoint file"}
}

func decodeAt(data []byte, info Info) (*protocol.Manifest, Info, error) {
	info.Size = int64(len(data))
	m, state, err := decodeFile(data)
	info.State = state
	if err != nil {
		info.Err = err
		remedy := "choose another checkpoint, or --restore none to start anew"
		if state == NewerVersion {
			remedy = "use the newer build that wrote it, or choose another checkpoint"
		}
		return nil, info, &FileError{Path: info.Path, State: state, Err: err, Remedy: remedy}
	}
	info.ID, info.Savepoint, info.Job, info.Kind, info.Completed = m.ID, savepoint(m.Kind), m.Job, m.Kind, m.Completed
	return m, info, nil
}

// Prune implements [Storage]. It goes by names and reads no file.
func (s *FileStore) Prune(ctx context.Context, keep int) error {
	if keep < 1 {
		return fmt.Errorf("prune checkpoints: keep is %d, want at least 1", keep)
	}
	if err := s.acquire(ctx); err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	defer s.done()
	found, err := listed(s.dir)
	if err != nil {
		return err
	}
	old := slices.DeleteFunc(finished(found), func(i Info) bool { return i.Savepoint })
	if n := len(old); n > 0 && old[n-1].ID == s.newest {
		old, keep = old[:n-1], keep-1
	}
	for i := range max(len(old)-keep, 0) {
		name := filepath.Base(old[i].Path)
		if err := s.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.dirError("remove", name, err)
		}
	}
	return nil
}

// Delete removes a checkpoint or savepoint, but never the newest file: the next start would silently go on from an older
// one.
func (s *FileStore) Delete(ctx context.Context, id sdk.CheckpointID) error {
	if err := s.acquire(ctx); err != nil {
		return fmt.Errorf("delete checkpoint %d: %w", id, err)
	}
	defer s.done()
	if id == s.newest {
		return fmt.Errorf("delete checkpoint %d: %w", id, ErrNewest)
	}
	found, err := listed(s.dir)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(finished(found), func(i Info) bool { return i.ID != id })
	if len(found) == 0 {
		return fmt.Errorf("delete checkpoint %d: %w in %s", id, ErrNoCheckpoint, s.dir.Path())
	}
	for i := range found {
		name := filepath.Base(found[i].Path)
		if err := s.dir.Remove(name); err != nil {
			return s.dirError("remove", name, err)
		}
	}
	if err := s.dir.Sync(); err != nil {
		return s.dirError("sync", "", err)
	}
	return nil
}
