package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Job holds the instruments of a whole job run. Take it from [Registry.Job].
type Job struct {
	state  atomic.Uint32
	schema atomic.Uint32

	// Restarts counts restarts by what was restarted.
	Restarts [restartScopes]Counter
	// ProcessMailboxBytes is what the mailboxes of the whole process hold, of all jobs together.
	ProcessMailboxBytes Level
	// Abandoned counts goroutines of connectors that did not return in time and were left behind, fenced.
	Abandoned Counter
	// StaleCallbacks counts late and repeated callbacks that the life cycle ignored.
	StaleCallbacks Counter

	// Completed and Triggered count checkpoints, savepoints included; use [Job.CheckpointCompleted] for the first.
	Triggered, Completed Counter
	// Aborted counts checkpoints that did not complete.
	Aborted [abortReasons]Counter
	// Running is when the checkpoint in progress was triggered; clear it when it ends.
	Running Moment
	// Duration is the time from trigger to completion of completed checkpoints.
	Duration Histogram
	// Stages are the parts of it.
	Stages [checkpointStages]Histogram

	lastID    atomic.Int64
	lastEnd   Moment
	lastBytes Level
}

// State is a job's main life-cycle state.
type State uint8

// Main states, in order.
const (
	Created State = iota
	Restoring
	Running
	Draining
	Cancelling
	Failed
	Closed

	states
)

func (s State) String() string {
	return nameOf(int(s), "created", "restoring", "running", "draining", "cancelling", "failed", "closed")
}

// SchemaState is the sub-state of a schema change.
type SchemaState uint8

// Schema-change states, in order.
const (
	SchemaIdle SchemaState = iota
	SchemaQuiescing
	SchemaTriggerRequested
	SchemaWaitingEnd

	schemaStates
)

func (s SchemaState) String() string {
	return nameOf(int(s), "idle", "quiescing", "trigger_requested", "waiting_end")
}

// RestartScope is what a restart restarted.
type RestartScope uint8

// Restart scopes.
const (
	RestartReader RestartScope = iota
	RestartCoordinator
	RestartSink
	RestartJob

	restartScopes
)

func (s RestartScope) String() string { return nameOf(int(s), "reader", "coordinator", "sink", "job") }

// CheckpointStage is a part of a checkpoint's duration as the checkpoint coordinator sees it.
type CheckpointStage uint8

// Stages of a checkpoint, in order.
const (
	CheckpointCut     CheckpointStage = iota // enumerator and tracker
	CheckpointReaders                        // until the last reader acknowledged
	CheckpointSinks                          // until the last sink task acknowledged
	CheckpointStore                          // writing the manifest
	CheckpointCommit                         // until the last sink task committed

	checkpointStages
)

func (s CheckpointStage) String() string {
	return nameOf(int(s), "cut", "readers", "sinks", "store", "commit")
}

// AbortReason is why a checkpoint did not complete.
type AbortReason uint8

// Abort reasons.
const (
	AbortTimeout AbortReason = iota
	AbortReader
	AbortCoordinator
	AbortSink
	AbortStore
	AbortTerminal // cancelled or failed job
	AbortOther

	abortReasons
)

func (r AbortReason) String() string {
	return nameOf(int(r), "timeout", "reader", "coordinator", "sink", "store", "terminal", "other")
}

// SetState says which main state the job is in.
func (j *Job) SetState(s State) { j.state.Store(uint32(s)) }

// SetSchemaState says which schema-change state the job is in.
func (j *Job) SetSchemaState(s SchemaState) { j.schema.Store(uint32(s)) }

// CheckpointCompleted counts a completed checkpoint of the given file size in bytes.
func (j *Job) CheckpointCompleted(id sdk.CheckpointID, at time.Time, took time.Duration, size int64) {
	j.Completed.Inc()
	j.Duration.Observe(took)
	j.lastBytes.Set(size)
	j.lastEnd.Set(at)
	j.lastID.Store(int64(id))
}

// CheckpointRestored says from which checkpoint the job goes on. It counts as the last one, without being counted.
func (j *Job) CheckpointRestored(id sdk.CheckpointID, completed time.Time) {
	j.lastEnd.Set(completed)
	j.lastID.Store(int64(id))
}

func (j *Job) instruments() []instrument {
	list := []instrument{
		{"penstock.process.mailbox.size", "By", "Payload in all mailboxes of the process, of all its jobs.", "", "", &j.ProcessMailboxBytes},
		{"penstock.job.abandoned", "{goroutine}", "Connector calls that did not return in time and were left behind, fenced.", "", "", &j.Abandoned},
		{"penstock.job.callbacks.stale", "{call}", "Late and repeated callbacks that the life cycle ignored.", "", "", &j.StaleCallbacks},
		{"penstock.checkpoint.triggered", "{checkpoint}", "Checkpoints and savepoints begun.", "", "", &j.Triggered},
		{"penstock.checkpoint.completed", "{checkpoint}", "Checkpoints and savepoints completed.", "", "", &j.Completed},
		{"penstock.checkpoint.running.age", "s", "Age of the checkpoint in progress; absent when none is.", "", "", &j.Running},
		{"penstock.checkpoint.duration", "s", "Time from trigger to completion.", "", "", &j.Duration},
		{"penstock.checkpoint.last.id", "", "Last completed checkpoint; absent before the first.", "", "", known{&j.lastID}},
		{"penstock.checkpoint.last.age", "s", "Time since the last completed checkpoint; absent before the first.", "", "", &j.lastEnd},
		{"penstock.checkpoint.last.size", "By", "Size of the last checkpoint file.", "", "", &j.lastBytes},
	}
	for s := range states {
		list = append(list, instrument{
			"penstock.job.state", "", "1 for the state that the job is in, else 0.", "state", s.String(), oneOf{&j.state, uint32(s)},
		})
	}
	for s := range schemaStates {
		list = append(list, instrument{
			"penstock.job.schema.state", "", "1 for the schema-change state that the job is in, else 0.", "state", s.String(), oneOf{&j.schema, uint32(s)},
		})
	}
	for s := range restartScopes {
		list = append(list, instrument{"penstock.job.restarts", "{restart}", "Restarts.", "scope", s.String(), &j.Restarts[s]})
	}
	for r := range abortReasons {
		list = append(list, instrument{
			"penstock.checkpoint.aborted", "{checkpoint}", "Checkpoints that did not complete.", "reason", r.String(), &j.Aborted[r],
		})
	}
	for s := range checkpointStages {
		list = append(list, instrument{
			"penstock.checkpoint.stage.duration", "s", "Durations of the stages of checkpoints.", "stage", s.String(), &j.Stages[s],
		})
	}
	return list
}
