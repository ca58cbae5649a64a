package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// listener hands what the engine tells to the goroutine of run, as the engine must not wait for a terminal.
func (r *running) listener() engine.Listener {
	post := func(event func()) {
		select {
		case r.events <- event:
		default:
		}
	}
	return engine.Listener{
		Restored: func(m *protocol.Manifest) {
			post(func() { r.restored(m) })
		},
		CheckpointDone: func(m *protocol.Manifest, took time.Duration) {
			kind, id, records := m.Kind, m.ID, m.Records
			post(func() { r.checkpointed(kind, id, records, took) })
		},
		CheckpointAborted: func(id sdk.CheckpointID, err error) {
			post(func() { r.say("checkpoint %d was given up: %v", id, err) })
		},
		Restarting: func(what string, err error, after time.Duration) {
			post(func() { r.say("%s failed and restarts in %s: %v", what, human.Span(after), err) })
		},
	}
}

func (r *running) restored(m *protocol.Manifest) {
	splits := map[sdk.SplitID]bool{} // one that was just assigned is in the tracker and with its reader
	for _, reader := range m.Readers {
		for _, s := range reader.Splits {
			splits[s.ID] = true
		}
	}
	for _, a := range m.Coordinator.Tracker {
		for _, s := range a.Splits {
			splits[s.ID] = true
		}
	}
	r.begun = true
	r.meter.Restored(m.Records)
	r.say("restored from %s %d (%s old): %s, parallelism %d", kindName(m.Kind), m.ID, human.Span(time.Since(m.Completed)), human.Plural(len(splits), "split"), r.file.Job.Parallelism)
}

// checkpointed prints a line for savepoints, and for the first checkpoint of a new job, which holds where it begins. The others only
// show in the status.
func (r *running) checkpointed(kind protocol.CheckpointKind, id sdk.CheckpointID, records int64, took time.Duration) {
	r.meter.Checkpointed(took)
	switch {
	case kind == protocol.Savepoint:
		r.say("savepoint %d completed in %s, %s committed", id, human.Span(took), human.Plural(records, "record"))
	case !r.begun && kind == protocol.Periodic:
		r.say("new job: %s to %s, parallelism %d (checkpoint %d)", r.file.Source.Name, r.file.Sink.Name, r.file.Job.Parallelism, id)
	}
	r.begun = true
}

func kindName(k protocol.CheckpointKind) string {
	switch k {
	case protocol.Savepoint, protocol.Stop:
		return "savepoint"
	case protocol.Final:
		return "final checkpoint"
	case protocol.Periodic:
	}
	return "checkpoint"
}

// end says how the job ended.
func (r *running) end(handle *engine.Handle) error {
	result, err := handle.Wait(context.Background())
	if err != nil {
		return r.failure(err)
	}
	records := human.Plural(result.Records, "record")
	switch result.Outcome {
	case engine.Finished:
		r.say("finished: %s committed (checkpoint %d)", records, result.Checkpoint)
	case engine.AlreadyFinished:
		r.say("had finished before: %s committed (checkpoint %d). Nothing to do; --restore none reads everything anew.", records, result.Checkpoint)
	case engine.Stopped:
		r.say("savepoint %d written, %s committed. Go on with: %s", result.Checkpoint, records, r.again)
	case engine.Cancelled:
		r.say("cancelled; go on from the last checkpoint with: %s", r.again)
	}
	return nil
}

// failure prints an error for a person: what happened, and which option of the job file to look at.
func (r *running) failure(err error) error {
	r.screen.Status("")
	lines := strings.Split(err.Error(), "\n") // joined errors have one a line
	r.screen.Line(fmt.Sprintf("%s: %s", r.file.Job.Name, lines[0]))
	for _, l := range lines[1:] {
		r.screen.Line("  " + l)
	}
	if path, at, variables, ok := r.file.Where(err); ok {
		hint := fmt.Sprintf("  Check %s in %s", path, at)
		if len(variables) > 0 {
			hint += fmt.Sprintf("; its value came from ${%s}", strings.Join(variables, "}, ${"))
		}
		r.screen.Line(hint + ".")
	}
	return &exitError{code: exitFailure}
}
