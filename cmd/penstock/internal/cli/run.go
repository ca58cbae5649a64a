package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/jobfile"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/progress"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

type runFlags struct {
	restore   string
	overrides []string
	metrics   string
	log       logFlags
}

func (c *command) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Run the job that a job file describes",
		Long: `Run goes on from the newest completed checkpoint in checkpoint.dir, or begins when there is none.

A bounded job ends after its last commit. Ctrl-C or SIGTERM takes a savepoint, commits, and ends with exit code 0; a second
one abandons the job at once with exit code 130: it then goes on from its last checkpoint.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.load(args[0], f.overrides)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), file, f)
		},
	}
	cmd.Flags().StringVar(&f.restore, "restore", "auto", "where to begin: auto (newest checkpoint, if any), none (anew), or the path of a checkpoint")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "serve /metrics, /healthz and /readyz at this address, for example 127.0.0.1:9100")
	overridesFlag(cmd, &f.overrides)
	f.log.register(cmd)
	return cmd
}

// running is a job and the person who watches it. Its fields belong to the goroutine of run; the engine reaches it through
// events only.
type running struct {
	command
	file   *jobfile.File
	again  string // the command line that goes on
	screen *progress.Screen
	meter  *progress.Meter
	stats  *telemetry.Registry
	events chan func()
	begun  bool // it was said where the job began
}

const (
	statusEvery = 200 * time.Millisecond // on a terminal
	lineEvery   = 10 * time.Second       // elsewhere
	// abandonWithin is how long an abandoned job may take to let go of its state directory. Exit ends what is left.
	abandonWithin = time.Second
	// sameSignal is the time in which a second signal is an echo of the first: some supervisors signal the process and then
	// its group.
	sameSignal = 300 * time.Millisecond
	// maxEvents may wait for a terminal that does not take them; later ones are dropped.
	maxEvents = 64
)

func (c *command) run(ctx context.Context, file *jobfile.File, f runFlags) error {
	r := &running{
		command: *c, file: file, screen: progress.NewScreen(c.Stderr, c.ErrColumns), meter: progress.NewMeter(file.Bounded),
		stats: telemetry.NewRegistry(file.Job.Name, telemetry.Options{}), events: make(chan func(), maxEvents),
	}
	r.again = goOn(file, f)
	logger, err := f.log.logger(r.screen)
	if err != nil {
		return &exitError{exitBadInput, err}
	}
	job := file.Job
	job.Logger, job.Metrics, job.Listener, job.Restore = logger, r.stats, r.listener(), restoreMode(f.restore)

	var web *server
	if f.metrics != "" {
		if web, err = serve(f.metrics, r.stats); err != nil {
			return &exitError{exitBadInput, err}
		}
		defer web.close()
		r.say("metrics at http://%s/metrics", web.address)
	}
	handle, stopping, err := r.start(ctx, job)
	if err != nil || handle == nil {
		return err
	}
	if web != nil {
		web.watch(handle.Ready, handle.Done())
	}
	return r.watch(handle, stopping)
}

// goOn is what a person types to go on where the job stopped. Secrets on the command line are not repeated.
func goOn(file *jobfile.File, f runFlags) string {
	parts := []string{"penstock run", quote(file.Path)}
	for _, o := range f.overrides {
		if key, _, _ := strings.Cut(o, "="); file.Document.Secret(key) {
			o = key + "=..."
		}
		parts = append(parts, "--set", quote(o))
	}
	if f.metrics != "" {
		parts = append(parts, "--metrics", f.metrics)
	}
	return strings.Join(parts, " ")
}

// quote is for the shell, where it is needed.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`{}[]()<>|&;*?!#~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func restoreMode(flag string) engine.Restore {
	switch flag {
	case "", "auto":
		return engine.Restore{Mode: engine.Auto}
	case "none":
		return engine.Restore{Mode: engine.None}
	default:
		return engine.Restore{Mode: engine.Path, Path: flag}
	}
}

// start starts the job. A signal meanwhile ends the attempt: then there is no handle and no error, or, when the job was
// faster, a handle of a job that is to stop.
func (r *running) start(ctx context.Context, job engine.Job) (handle *engine.Handle, stopping bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type started struct {
		handle *engine.Handle
		err    error
	}
	done := make(chan started, 1)
	go func() {
		h, err := engine.Start(ctx, job)
		done <- started{h, err}
	}()
	for {
		select {
		case s := <-done:
			switch {
			case s.err == nil && stopping:
				s.handle.Stop()
				return s.handle, true, nil
			case s.err == nil:
				return s.handle, false, nil
			case stopping:
				r.say("stopped before it had started. Go on with: %s", r.again)
				return nil, true, nil
			}
			r.drain()
			return nil, false, r.failure(s.err)
		case event := <-r.events:
			event()
		case <-r.Signals:
			if stopping {
				return nil, true, &exitError{code: exitAbandoned}
			}
			stopping = true
			cancel(errStopped)
		}
	}
}

// errStopped is the cause of a start that a signal ended.
var errStopped = errors.New("stopped by a signal")

// watch shows progress until the job has ended, and passes signals on.
func (r *running) watch(handle *engine.Handle, stopping bool) error {
	every := lineEvery
	if r.screen.Terminal() {
		every = statusEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	r.meter.Status(r.stats.Snapshot()) // the first sample: a rate needs two
	var asked time.Time
	for {
		select {
		case <-handle.Done():
			r.screen.Status("")
			r.drain()
			return r.end(handle)
		case event := <-r.events:
			event()
		case <-ticker.C:
			r.status(stopping)
		case <-r.Signals:
			if stopping && r.Now().Sub(asked) < sameSignal {
				continue
			}
			if stopping {
				return r.abandon(handle)
			}
			stopping, asked = true, r.Now()
			r.screen.Status("")
			r.say("stopping: taking a savepoint (again to abandon at once)")
			handle.Stop()
		}
	}
}

func (r *running) status(stopping bool) {
	text := r.meter.Status(r.stats.Snapshot())
	if stopping {
		text = "stopping  " + text
	}
	if r.screen.Terminal() {
		r.screen.Status(r.file.Job.Name + "  " + text)
		return
	}
	r.say("%s", text)
}

// drain shows what the engine told until now.
func (r *running) drain() {
	for {
		select {
		case event := <-r.events:
			event()
		default:
			return
		}
	}
}

// abandon ends the job without a savepoint.
func (r *running) abandon(handle *engine.Handle) error {
	handle.Cancel()
	select {
	case <-handle.Done():
	case <-time.After(abandonWithin):
	}
	r.screen.Status("")
	at := "it begins anew"
	if id := r.stats.Snapshot().LastCheckpoint; id > 0 {
		at = fmt.Sprintf("it goes on from checkpoint %d", id)
	}
	r.say("abandoned; %s with: %s", at, r.again)
	return &exitError{code: exitAbandoned}
}

// say prints a line about the job.
func (r *running) say(format string, args ...any) {
	r.screen.Line(r.file.Job.Name + "  " + fmt.Sprintf(format, args...))
}
