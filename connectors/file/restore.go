package file

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// Restore implements [sdk.Committer].
func (w *writer) Restore(ctx context.Context, prepared [][]byte) error {
	manifests := make([]*manifest, 0, len(prepared))
	for _, data := range prepared {
		if len(data) == 0 {
			continue
		}
		m, err := decodeManifest(data, w.job)
		if err != nil {
			return sdk.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	notes, err := w.notes()
	if err != nil {
		return err
	}
	if err := w.checkRun(notes); err != nil {
		return err
	}
	for _, data := range prepared {
		if len(data) == 0 {
			continue
		}
		if err := w.Commit(ctx, data); err != nil {
			return err
		}
	}
	return w.sweep(notes, manifests)
}

// notes reads the notes of all tasks that ever committed for this job.
func (w *writer) notes() (map[int]*note, error) {
	names, err := w.dir.List()
	if err != nil {
		return nil, w.fail("list", "", err)
	}
	notes := map[int]*note{}
	for _, name := range names {
		task, unfinished, ok := noteTask(name, w.job)
		if !ok || unfinished {
			continue
		}
		if notes[task], err = w.readNote(name); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// checkRun refuses to write after output that this run's state knows nothing of: committed for a checkpoint behind the one
// that is restored, because that was removed, or an older one chosen, or none. The records in between would be written
// again; [Sink.Repeat] accepts that. Attempts grow for as long as a job's state lives, so one that is not higher than a
// committed one means that the state directory is another, and then not even the names of files would be new.
func (w *writer) checkRun(notes map[int]*note) error {
	for _, n := range notes {
		if n == nil || n.Attempt < w.attempt && (n.Checkpoint <= w.restored || w.sink.Repeat) {
			continue
		}
		return sdk.Fatal(&Error{
			Op: "write to", Path: w.sink.Path,
			Err: fmt.Errorf("%w: job %s has committed checkpoint %d there, and this run begins %s: records would be written twice",
				ErrOtherRun, w.job, n.Checkpoint, begins(w.restored)),
			Remedy: fmt.Sprintf("Go on from the newest checkpoint, choose another path, or move away the files %s-* and .penstock-%s-*; "+
				"repeat: true accepts it while the state directory is the same", w.job, w.job),
		})
	}
	return nil
}

func begins(restored sdk.CheckpointID) string {
	if restored == 0 {
		return "anew"
	}
	return fmt.Sprintf("at checkpoint %d", restored)
}

// sweep removes every hidden data file of the job. After the commits nothing that the restored checkpoint holds has a hidden name
// any more, so all of them are remains: of writers that were killed, of checkpoints that never completed, or of a commit
// that had begun behind the checkpoint now restored.
func (w *writer) sweep(notes map[int]*note, restored []*manifest) error {
	names, err := w.dir.List()
	if err != nil {
		return w.fail("list", "", err)
	}
	remains := slices.DeleteFunc(names, func(name string) bool {
		_, unfinished, ok := noteTask(name, w.job)
		return !isPart(name, w.job) && (!ok || !unfinished)
	})
	if len(remains) == 0 {
		return nil
	}
	for task, n := range notes {
		if n != nil && slices.ContainsFunc(n.Hidden, func(h string) bool { return slices.Contains(remains, h) }) {
			if err := w.lowerNote(task, restored); err != nil {
				return err
			}
		}
	}
	for _, name := range remains {
		err = errors.Join(err, w.remove(name))
	}
	if err != nil {
		return err
	}
	w.log.Info("removed uncommitted files of an earlier run", "files", len(remains), "path", w.sink.Path)
	return w.fail("sync", "", w.dir.Sync())
}

// lowerNote takes a task's note back to the restored checkpoint. Some files of the noted commit are about to be removed; should
// its checkpoint be restored after all, their absence must count as loss.
func (w *writer) lowerNote(task int, restored []*manifest) error {
	var last *manifest
	for _, m := range restored {
		if m.Task == task && (last == nil || m.Checkpoint > last.Checkpoint) {
			last = m
		}
	}
	if last == nil {
		return errors.Join(w.remove(noteName(w.job, task)), w.fail("sync", "", w.dir.Sync()))
	}
	return w.writeNote(last)
}
