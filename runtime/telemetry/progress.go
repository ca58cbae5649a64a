package telemetry

import (
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Progress is a job's state in the few numbers that a person wants to see.
type Progress struct {
	At     time.Time
	State  State
	Schema SchemaState

	// Records and Bytes were emitted by readers in this process, repeats after restarts included.
	Records, Bytes uint64
	// Written is the number of elements given to sinks.
	Written uint64
	// Pending is how many records are left to read. It is known only when every reader of the job knows its part.
	Pending      int64
	PendingKnown bool
	// Lag is the largest lag of the readers that know theirs.
	Lag      time.Duration
	LagKnown bool

	Readers int
	Splits  int64
	// Blocked is the number of readers that have work and no credit, right now.
	Blocked int

	// LastCheckpoint is the newest completed or restored checkpoint, zero before the first; it is CheckpointAge old.
	LastCheckpoint       sdk.CheckpointID
	CheckpointAge        time.Duration
	CheckpointsCompleted uint64
	CheckpointsAborted   uint64
	Restarts             uint64
}

// Snapshot reads the present numbers.
func (r *Registry) Snapshot() Progress {
	now := r.now()
	j := r.job
	p := Progress{
		At: now, State: State(j.state.Load()), Schema: SchemaState(j.schema.Load()),
		LastCheckpoint: sdk.CheckpointID(j.lastID.Load()), CheckpointsCompleted: j.Completed.Value(),
	}
	p.CheckpointAge, _ = j.lastEnd.Age(now)
	for i := range j.Aborted {
		p.CheckpointsAborted += j.Aborted[i].Value()
	}
	for i := range j.Restarts {
		p.Restarts += j.Restarts[i].Value()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reader := range r.mu.readers {
		p.Records += reader.Records.Value()
		p.Bytes += reader.Bytes.Value()
		p.Splits += reader.Splits.Value()
		if reader.OutputBlocked.Running() {
			p.Blocked++
		}
	}
	for _, sink := range r.mu.sinks {
		p.Written += sink.Records.Value()
	}
	p.Readers = len(r.mu.readers)
	r.pendingLocked(&p)
	return p
}

// pendingLocked adds up what the readers' connectors say. One that does not know makes the sum unknown.
func (r *Registry) pendingLocked(p *Progress) {
	var pending float64
	known := 0
	for key, s := range r.mu.connectors {
		if key.role != readerRole {
			continue
		}
		if n, ok := s.gauge(sdk.GaugePendingRecords); ok {
			pending += n
			known++
		}
		if seconds, ok := s.gauge(sdk.GaugeLagSeconds); ok {
			p.LagKnown = true
			p.Lag = max(p.Lag, time.Duration(seconds*float64(time.Second)))
		}
	}
	if known > 0 && known >= p.Readers {
		p.Pending, p.PendingKnown = int64(pending), true
	}
}
