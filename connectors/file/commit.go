package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock-dev/penstock/sdk"
)

// Prepare implements [sdk.Committer]. It renames nothing.
func (w *writer) Prepare(_ context.Context, checkpoint sdk.CheckpointID) ([]byte, error) {
	if w.broken == nil {
		w.broken = w.end()
	}
	if w.broken != nil {
		return nil, w.broken
	}
	if len(w.ended) == 0 {
		return nil, nil
	}
	m := manifest{Version: manifestVersion, Job: w.job, Task: w.task, Attempt: w.attempt, Checkpoint: checkpoint}
	for i, name := range w.ended {
		info, err := w.dir.Lstat(name)
		if err != nil {
			return nil, w.fail("look at", name, err)
		}
		f := prepared{Hidden: name, Final: finalName(w.job, checkpoint, w.task, i, w.sink.extension()), Size: info.Size()}
		// Found here it fails the job before the checkpoint completes; at the commit it would be too late to choose another name.
		if err := w.free(f.Final); err != nil {
			return nil, sdk.Fatal(err)
		}
		m.Files = append(m.Files, f)
	}
	if err := w.dir.Sync(); err != nil {
		return nil, w.fail("sync", "", err)
	}
	data, err := m.encode()
	if err != nil {
		return nil, fmt.Errorf("file sink: %w", err)
	}
	w.ended = nil
	return data, nil
}

// free reports that no file has the final name.
func (w *writer) free(final string) error {
	_, err := w.dir.Lstat(final)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return w.fail("look at", final, err)
	}
	return &Error{
		Op: "keep", Path: w.path(final), Err: ErrExists,
		Remedy: "It is not from this run of the job. Move the older files away, or choose another path or job name",
	}
}

// Commit implements [sdk.Committer]. The order of its steps is argued at [note].
func (w *writer) Commit(_ context.Context, data []byte) error {
	m, err := decodeManifest(data, w.job)
	if err != nil {
		return sdk.Fatal(err)
	}
	n, err := w.readNote(noteName(m.Job, m.Task))
	if err != nil {
		return err
	}
	begun := n.covers(m)
	var due []prepared
	for _, f := range m.Files {
		there, err := w.inspect(m, f, begun)
		if err != nil {
			return err
		}
		if there {
			due = append(due, f)
		}
	}
	if !begun {
		if err := w.writeNote(m); err != nil {
			return err
		}
	}
	for _, f := range due {
		if err := w.free(f.Final); err != nil {
			return err
		}
		if err := w.dir.Rename(f.Hidden, f.Final); err != nil {
			return w.fail("rename", f.Hidden, err)
		}
	}
	// Also with nothing due: an earlier attempt may have failed just here.
	return w.fail("sync", "", w.dir.Sync())
}

// inspect reports whether the hidden file still waits for its rename.
func (w *writer) inspect(m *manifest, f prepared, begun bool) (bool, error) {
	info, err := w.dir.Lstat(f.Hidden)
	switch {
	case errors.Is(err, fs.ErrNotExist) && begun:
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		if info, err := w.dir.Lstat(f.Final); err == nil && info.Size() == f.Size {
			return false, nil // renamed already; it is the note that somebody removed
		}
		return false, sdk.Fatal(&Error{
			Op: "commit", Path: w.path(f.Hidden), Err: fmt.Errorf("%w: checkpoint %d needs it as %s", ErrDataMissing, m.Checkpoint, f.Final),
			Remedy: fmt.Sprintf("Somebody removed it, or the path is not the one of the earlier run. Bring it back, or, if it had been committed and "+
				"taken away, bring back %s", noteName(m.Job, m.Task)),
		})
	case err != nil:
		return false, w.fail("look at", f.Hidden, err)
	case info.Size() != f.Size:
		return false, sdk.Fatal(&Error{
			Op: "commit", Path: w.path(f.Hidden), Err: fmt.Errorf("%w: it has %d bytes, checkpoint %d prepared %d", ErrDataChanged, info.Size(), m.Checkpoint, f.Size),
			Remedy: "Bring back the file as it was, or restore an older checkpoint",
		})
	}
	return true, nil
}

// Discard implements [sdk.Discarder].
func (w *writer) Discard(_ context.Context, data []byte) error {
	m, err := decodeManifest(data, w.job)
	if err != nil {
		return err
	}
	n, err := w.readNote(noteName(m.Job, m.Task))
	if err != nil {
		return err
	}
	if n.covers(m) {
		return fmt.Errorf("file sink: checkpoint %d of task %d cannot be discarded: its commit has begun", m.Checkpoint, m.Task)
	}
	for _, f := range m.Files {
		err = errors.Join(err, w.remove(f.Hidden))
	}
	return err
}
