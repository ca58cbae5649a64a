package engine

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"go.uber.org/zap"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// Job describes what to run. The zero value of every field but Name, Source and Sink has a meaning.
type Job struct {
	// Name identifies the job in its state directory and towards sinks: letters, digits, dot, dash and underscore, at most
	// 100, beginning with a letter or digit.
	Name string
	// Parallelism is the number of readers and of sink tasks, 1 to 4096; 0 means 1. It may change between runs.
	Parallelism int
	// Source is made with [From].
	Source connector.Source
	Sink   sdk.Sink
	// Exchange joins readers and sink tasks; empty means forward.
	Exchange   exchange.Kind
	Checkpoint Checkpoint
	Restore    Restore
	// Options; nil means [DefaultOptions].
	Options *Options
	// Logger; nil discards.
	Logger *zap.Logger
	// Metrics; nil makes a private registry.
	Metrics *telemetry.Registry
	// Listener is told of the job's life; nil fields are skipped.
	Listener Listener
	// Now is the wall clock; nil means time.Now. Timers always are the runtime's.
	Now func() time.Time
	// Seams let a test stand between the parts of the engine; nil otherwise.
	Seams *seam.Seams
}

// Checkpoint says where and how often the job's state is kept.
type Checkpoint struct {
	// Dir is the state directory. Empty keeps the state in memory: failed tasks still recover, a killed process does not.
	Dir string
	// Interval between checkpoints; 0 means 10 s. [Never] takes them only where something waits for one: the end of a
	// bounded job, a savepoint, a source's start positions.
	Interval time.Duration
	// Keep is how many completed checkpoints are kept besides savepoints; 0 means 3.
	Keep int
	// Storage replaces Dir; the engine does not close it.
	Storage checkpoint.Storage
}

// Never is a [Checkpoint.Interval] without periodic checkpoints.
const Never time.Duration = -1

// DefaultInterval and DefaultKeep are the defaults of [Checkpoint].
const (
	DefaultInterval = 10 * time.Second
	DefaultKeep     = 3
)

// RestoreMode says where a job starts.
type RestoreMode uint8

// Modes of [Restore].
const (
	Auto RestoreMode = iota // from the newest completed checkpoint, if there is one
	None                    // anew; what is in the directory stays
	Path                    // from the given checkpoint file
)

// Restore says where a job starts.
type Restore struct {
	Mode RestoreMode
	Path string
}

// Listener is told of a job's life, on the job's own goroutine: do not block and do not call back. What it is told of is not
// logged as well.
type Listener struct {
	// Restored: the job goes on from a checkpoint.
	Restored func(m *protocol.Manifest)
	// CheckpointDone: a checkpoint completed and all of it is committed.
	CheckpointDone func(m *protocol.Manifest, took time.Duration)
	// CheckpointAborted: a checkpoint was given up; the job goes on.
	CheckpointAborted func(id sdk.CheckpointID, err error)
	// Restarting: something failed and is restarted after a pause.
	Restarting func(what string, err error, after time.Duration)
}

// Outcome is how a job ended.
type Outcome uint8

// Outcomes.
const (
	// Finished: a bounded job read and committed everything.
	Finished Outcome = iota + 1
	// AlreadyFinished: the restored checkpoint says that the job had finished; nothing was done.
	AlreadyFinished
	// Stopped: the job was asked to stop and took a savepoint.
	Stopped
	// Cancelled: the job was cancelled, or stopped before it had started; its newest completed checkpoint stands.
	Cancelled
)

// Result is how a job ended, when it did not fail.
type Result struct {
	Outcome Outcome
	// Checkpoint is the newest completed checkpoint, 0 when there is none.
	Checkpoint sdk.CheckpointID
	// Records is how many records the job has committed over all its runs, as of that checkpoint.
	Records int64
}

// From erases the split type of a source.
func From[S sdk.Split](source sdk.Source[S]) connector.Source { return connector.Erase(source) }

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// maxParallelism bounds the number of tasks of a job in one process.
const maxParallelism = 4096

// withDefaults returns a copy in which every field is set.
func (j Job) withDefaults() Job {
	if j.Parallelism == 0 {
		j.Parallelism = 1
	}
	if j.Exchange == "" {
		j.Exchange = exchange.Forward
	}
	if j.Checkpoint.Interval == 0 {
		j.Checkpoint.Interval = DefaultInterval
	}
	if j.Checkpoint.Keep == 0 {
		j.Checkpoint.Keep = DefaultKeep
	}
	if j.Options == nil {
		j.Options = new(DefaultOptions())
	}
	if j.Logger == nil {
		j.Logger = zap.NewNop()
	}
	if j.Now == nil {
		j.Now = time.Now
	}
	if j.Metrics == nil {
		j.Metrics = telemetry.NewRegistry(j.Name, telemetry.Options{Now: j.Now})
	}
	return j
}

// Validate reports every problem of the job at once.
func (j Job) Validate() error {
	j = j.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !validName.MatchString(j.Name) {
		bad("job name %q (letters, digits, dot, dash and underscore, at most 100, beginning with a letter or digit)", j.Name)
	}
	if j.Parallelism < 1 || j.Parallelism > maxParallelism {
		bad("parallelism %d (1 to %d)", j.Parallelism, maxParallelism)
	}
	if j.Source == nil {
		bad("job %s has no source", j.Name)
	}
	if j.Sink == nil {
		bad("job %s has no sink", j.Name)
	}
	if _, err := exchange.ParseKind(string(j.Exchange)); err != nil {
		errs = append(errs, err)
	}
	if j.Checkpoint.Interval < 0 && j.Checkpoint.Interval != Never {
		bad("checkpoint interval %s is negative", j.Checkpoint.Interval)
	}
	if j.Checkpoint.Keep < 1 {
		bad("checkpoint keep %d (at least 1)", j.Checkpoint.Keep)
	}
	if j.Restore.Mode == Path && j.Restore.Path == "" {
		bad("restore from a path needs the path")
	}
	return errors.Join(append(errs, j.Options.Validate())...)
}
