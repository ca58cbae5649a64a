package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock-dev/penstock/sdk"
)

// note says that the commit of a checkpoint has begun. There is one hidden note per task; each commit replaces it.
//
// A commit may have to be repeated after a crash, and between the two a consumer may have taken the final files away. A
// prepared file that is gone then means either that it was renamed, which is fine, or that it never was and is lost, which
// must stop the job. The note tells the two apart:
//
//  1. Before the note is written, every hidden file is seen to be there with its size.
//  2. The note is durable before the first rename.
//  3. Only a commit removes a prepared file's hidden name, except for a restore that goes back behind a begun commit; that one
//     removes the note, durably, before it removes any file.
//
// So with a note, a hidden name that is gone was renamed: whatever became of the final file after is its consumer's
// business. Without a note no rename has happened, so a hidden name that is gone is lost data. A note written after the
// renames could not tell: the consumer may be faster than the note.
//
// A task's checkpoints commit in order, each before the next completes, and its attempts grow with them: a note covers every
// checkpoint and attempt up to its own.
type note struct {
	Version    int              `json:"version"`
	Checkpoint sdk.CheckpointID `json:"checkpoint"`
	Attempt    int64            `json:"attempt"`
	Hidden     []string         `json:"hidden"` // the files of that commit
}

const noteVersion = 1

// covers reports that the commit of m had begun.
func (n *note) covers(m *manifest) bool {
	return n != nil && n.Checkpoint >= m.Checkpoint && n.Attempt >= m.Attempt
}

// readNote returns nil when the task has none.
func (w *writer) readNote(name string) (*note, error) {
	data, err := w.dir.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, w.fail("read", name, err)
	}
	n, err := decodeNote(data)
	if err != nil {
		e := &Error{Op: "read", Path: w.path(name), Err: err}
		if _, newer := errors.AsType[*sdk.UnknownVersionError](err); !newer {
			e.Remedy = "Restore the file from a backup. Without it a repeated commit cannot know which files were committed before"
		}
		return nil, sdk.Fatal(e)
	}
	return n, nil
}

func decodeNote(data []byte) (*note, error) {
	n := new(note)
	if err := json.Unmarshal(data, n); err != nil {
		return nil, fmt.Errorf("damaged note of the last commit: %w", err)
	}
	if n.Version != noteVersion {
		return nil, sdk.UnknownVersion("file sink note", n.Version, noteVersion)
	}
	return n, nil
}

// writeNote replaces the note, durably.
func (w *writer) writeNote(m *manifest) error {
	n := note{Version: noteVersion, Checkpoint: m.Checkpoint, Attempt: m.Attempt}
	for _, f := range m.Files {
		n.Hidden = append(n.Hidden, f.Hidden)
	}
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("file sink: %w", err)
	}
	name := noteName(m.Job, m.Task)
	fresh := name + newSuffix
	if err := w.dir.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w.fail("remove", fresh, err)
	}
	h, err := w.dir.Create(fresh)
	if err != nil {
		return w.fail("create", fresh, err)
	}
	_, err = h.Write(data)
	if err == nil {
		err = h.Sync()
	}
	if err := errors.Join(err, h.Close()); err != nil {
		return w.fail("write", fresh, err)
	}
	if err := w.dir.Rename(fresh, name); err != nil {
		return w.fail("rename", fresh, err)
	}
	return w.fail("sync", "", w.dir.Sync())
}
