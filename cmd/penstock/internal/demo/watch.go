package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/sdk"
)

// watch follows a job by its committed files.
type watch struct {
	Config
	counter counter
	told    int // records in the last line said
}

// job is a started job.
type job struct {
	cmd    *exec.Cmd
	output bytes.Buffer // read after done, as is err
	err    error
	done   chan struct{}
}

func (w *watch) start(ctx context.Context, file string) (*job, error) {
	j := &job{cmd: exec.CommandContext(ctx, w.Program, "run", file), done: make(chan struct{})}
	j.cmd.Env = w.Environment
	j.cmd.Stdout, j.cmd.Stderr = &j.output, &j.output
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the job: %w", err)
	}
	go func() {
		defer close(j.done)
		j.err = j.cmd.Wait()
	}()
	return j, nil
}

// killHalfWay runs the job until half of the records are committed and kills it.
func (w *watch) killHalfWay(ctx context.Context, file string) error {
	j, err := w.start(ctx, file)
	if err != nil {
		return err
	}
	ended, err := w.follow(ctx, j, int(w.Records)/2)
	if err != nil {
		return err
	}
	if ended {
		w.say("The job was faster than the hand with the kill switch; nothing was killed.")
		return nil
	}
	w.say("Killing the job (SIGKILL).")
	if err := j.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the job: %w", err)
	}
	<-j.done
	return nil
}

// finish starts the job again and waits for its end.
func (w *watch) finish(ctx context.Context, file string) error {
	newest, err := w.newest(ctx)
	if err != nil {
		return err
	}
	j, err := w.start(ctx, file)
	if err != nil {
		return err
	}
	w.say("Starting it again: it goes on from checkpoint %d.", newest)
	ended, err := w.follow(ctx, j, int(w.Records)+1)
	if err != nil {
		return err
	}
	if !ended {
		return errors.New("more records are committed than were written")
	}
	return nil
}

// newest is the checkpoint that the next run goes on from.
func (w *watch) newest(ctx context.Context) (sdk.CheckpointID, error) {
	infos, err := checkpoint.Inspect(ctx, w.state())
	if err != nil {
		return 0, err
	}
	var id sdk.CheckpointID
	for _, i := range infos {
		if i.State == checkpoint.Usable {
			id = max(id, i.ID)
		}
	}
	return id, nil
}

// follow shows how many records are committed until they reach a number, or the job ends.
func (w *watch) follow(ctx context.Context, j *job, until int) (ended bool, err error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	defer w.Screen.Status("")
	last, since := -1, time.Now()
	for {
		n, err := w.counter.count()
		if err != nil {
			return false, err
		}
		if n != last {
			last, since = n, time.Now()
		}
		if n < until {
			w.show(n)
		} else {
			w.Screen.Status("")
			w.say("Reading ...  %s committed", human.Plural(n, "record"))
			return false, nil
		}
		select {
		case <-ctx.Done():
			<-j.done // the context kills it
			return false, context.Cause(ctx)
		case <-j.done:
			if j.err != nil {
				return true, fmt.Errorf("the job failed (%w):\n%s", j.err, j.output.String())
			}
			return true, nil
		case now := <-ticker.C:
			if now.Sub(since) > stallAfter {
				_ = j.cmd.Process.Kill()
				<-j.done
				return false, fmt.Errorf("nothing was committed for %s; the job said:\n%s", human.Span(stallAfter), j.output.String())
			}
		}
	}
}

// show updates the status, or without a terminal says a line for every fifth of the records.
func (w *watch) show(n int) {
	w.Screen.Status(fmt.Sprintf("Reading ...  %s committed", human.Plural(n, "record")))
	if w.Screen.Terminal() || n-w.told < int(w.Records)/5 {
		return
	}
	w.told = n
	w.say("Reading ...  %s committed", human.Plural(n, "record"))
}
