package file

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

func TestFullDisk(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "syncdir"} {
		t.Run(op, func(t *testing.T) {
			r := newRig(t)
			w := r.writer(0, 1)
			r.fault = func(o, name string) error {
				if o == op {
					return &fs.PathError{Op: o, Path: name, Err: syscall.ENOSPC}
				}
				return nil
			}
			err := w.Write(t.Context(), batch(0, 3000))
			if err == nil {
				_, err = w.Prepare(t.Context(), 1)
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(e.Path, r.sink.Path) || !strings.Contains(err.Error(), "Free space") {
				t.Fatalf("got %v", err)
			}
			r.fault = nil
			if op == "write" || op == "sync" {
				if _, again := w.Prepare(t.Context(), 2); again == nil {
					t.Error("a torn file was prepared")
				}
			}
			must(t, w.Close(t.Context()))
			must(t, r.writer(0, 2).Restore(t.Context(), nil))
			if names := append(r.names(true), r.names(false)...); len(names) > 0 {
				t.Errorf("left %q", names)
			}
		})
	}
}

// Two tasks, two checkpoints; the process dies before step k, for every k. The next run restores the newest checkpoint
// that had completed and must show exactly its records, after one restore, two, or one that dies as well.
func TestCrashAtEveryStep(t *testing.T) {
	for _, again := range []int{0, 1, 3} {
		for k := 1; ; k++ {
			if !crashAt(t, k, again) {
				if k < 30 {
					t.Fatalf("only %d steps", k)
				}
				break
			}
		}
	}
}

func crashAt(t *testing.T, k, again int) (crashed bool) {
	r := newRig(t)
	r.unsynced = true
	r.sink.RollBytes = 600
	dead := errors.New("dead")
	steps, limit := 0, k
	r.fault = func(string, string) error {
		if steps++; steps >= limit {
			return dead // and everything after it
		}
		return nil
	}
	var completed [][]byte // what the newest completed checkpoint holds
	covered := 0
	run := func() error {
		ws := []*writer{r.writer(0, 1), r.writer(1, 2)}
		if err := ws[0].Restore(t.Context(), nil); err != nil {
			return err
		}
		for id := range 3 {
			var data [][]byte
			for task, w := range ws {
				from := id*20 + task*10
				if err := w.Write(t.Context(), batch(from, from+10)); err != nil {
					return err
				}
				p, err := w.Prepare(t.Context(), sdk.CheckpointID(id+1))
				if err != nil {
					return err
				}
				data = append(data, p)
			}
			completed, covered = data, (id+1)*20
			for task, w := range ws {
				if err := w.Commit(t.Context(), data[task]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := run()
	if crashed = err != nil; crashed && !errors.Is(err, dead) {
		t.Fatalf("step %d: %v", k, err)
	}
	attempt := int64(3)
	if again > 0 { // a restore that dies too
		steps, limit = 0, again
		_ = r.writer(0, attempt).Restore(t.Context(), completed)
		attempt++
	}
	r.fault = nil
	for range 2 {
		w := r.writer(0, attempt)
		if err := w.Restore(t.Context(), completed); err != nil {
			t.Fatalf("step %d, then %d: %v", k, again, err)
		}
		attempt++
		r.wantOffsets(covered)
		if p := r.parts(); len(p) > 0 {
			t.Fatalf("step %d, then %d: left %q", k, again, p)
		}
	}
	return crashed
}
