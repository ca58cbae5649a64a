package telemetry

// Coordinator holds the instruments of one coordinator epoch; the coordinator loop updates them, and the worker pool those
// of its calls. Take it from [Registry.NewCoordinator].
type Coordinator struct {
	// Epoch is the number of the epoch.
	Epoch Level
	// QueueEvents is the number of events waiting for the coordinator loop; OldestEvent is when the first of them arrived.
	QueueEvents Level
	OldestEvent Moment
	// EventService is the time that one event took on the loop.
	EventService Histogram

	// Readers is the number of registered readers.
	Readers Level
	// Registrations counts reader attempts that registered; Reconciliations counts those whose answer changed what the
	// coordinator believed: splits adopted, returned or found finished.
	Registrations, Reconciliations Counter
	// ReturnedSplits counts splits that were given back to the enumerator.
	ReturnedSplits Counter

	// Assignments is the number of splits in each tracker state. Splits that are unassigned are the enumerator's, and only
	// counted as far as the tracker still knows them.
	Assignments [assignmentStates]Level
	// OldestUncheckpointed is when the oldest assignment was dispatched that no completed checkpoint contains.
	OldestUncheckpointed Moment
	// TrackerEntries and TrackerBytes are the tracker's size.
	TrackerEntries, TrackerBytes Level
	// Compactions counts the tracker's compactions, Compacted the entries they removed.
	Compactions, Compacted Counter
	// Backpressure counts assignments that the tracker's bound refused.
	Backpressure Counter
	// Held is the number of assignments that wait behind closed dispatch gates or for retries.
	Held Level
	// Retries counts commands that were offered again.
	Retries Counter

	// AsyncQueued and AsyncRunning are the calls that wait for a worker and that have one.
	AsyncQueued, AsyncRunning Level
	// AsyncQueue is the time calls waited for a worker, AsyncExec the time they ran.
	AsyncQueue, AsyncExec Histogram
	// AsyncFailures counts calls that ended with an error, timeouts included; AsyncTimeouts only those.
	AsyncFailures, AsyncTimeouts Counter
	// Overlaps counts calls whose key was running already; Coalesced those of them that a newer one replaced, Skipped those
	// that were dropped by their options.
	Overlaps, Coalesced, Skipped Counter
	// StaleResults counts results that were dropped because their epoch, key or request was no longer current.
	StaleResults Counter
	// EventsDropped counts events between readers and enumerator that a full queue dropped.
	EventsDropped Counter
}

// AssignmentState is where the tracker has an assignment.
type AssignmentState uint8

// Assignment states, in order.
const (
	Unassigned AssignmentState = iota
	Dispatched
	Admitted
	Applied
	CheckpointIncluded
	GCEligible

	assignmentStates
)

func (s AssignmentState) String() string {
	return nameOf(int(s), "unassigned", "dispatched", "admitted", "applied", "checkpoint_included", "gc_eligible")
}

func (c *Coordinator) instruments() []instrument {
	return append(append(c.loop(), c.assigning()...), c.async()...)
}

func (c *Coordinator) loop() []instrument {
	return []instrument{
		{"penstock.coordinator.epoch", "", "Number of the coordinator's epoch.", "", "", &c.Epoch},
		{"penstock.coordinator.queue.events", "{event}", "Events waiting for the coordinator loop.", "", "", &c.QueueEvents},
		{"penstock.coordinator.queue.oldest.age", "s", "Age of the oldest waiting event; absent when none waits.", "", "", &c.OldestEvent},
		{"penstock.coordinator.event.duration", "s", "Time that an event took on the coordinator loop.", "", "", &c.EventService},
		{"penstock.coordinator.readers", "{reader}", "Registered readers.", "", "", &c.Readers},
		{"penstock.coordinator.registrations", "{reader}", "Reader attempts that registered.", "", "", &c.Registrations},
		{"penstock.coordinator.reconciliations", "{reader}", "Registrations that changed what the coordinator believed.", "", "", &c.Reconciliations},
		{"penstock.coordinator.splits.returned", "{split}", "Splits given back to the enumerator.", "", "", &c.ReturnedSplits},
		{"penstock.coordinator.events.dropped", "{event}", "Connector events dropped by a full queue.", "", "", &c.EventsDropped},
		{"penstock.coordinator.command.retries", "{command}", "Commands offered again.", "", "", &c.Retries},
	}
}

func (c *Coordinator) assigning() []instrument {
	list := []instrument{
		{
			"penstock.coordinator.assignment.oldest.age", "s", "Age of the oldest assignment that no completed checkpoint contains; absent without one.",
			"", "", &c.OldestUncheckpointed,
		},
		{"penstock.coordinator.assignment.held", "{command}", "Assignments waiting for a dispatch gate or a retry.", "", "", &c.Held},
		{"penstock.coordinator.assignment.backpressure", "{call}", "Assignments refused at the tracker's bound.", "", "", &c.Backpressure},
		{"penstock.coordinator.tracker.entries", "{entry}", "Entries of the assignment tracker.", "", "", &c.TrackerEntries},
		{"penstock.coordinator.tracker.size", "By", "Size of the assignment tracker.", "", "", &c.TrackerBytes},
		{"penstock.coordinator.tracker.compactions", "{run}", "Compactions of the assignment tracker.", "", "", &c.Compactions},
		{"penstock.coordinator.tracker.compacted", "{entry}", "Entries removed by compactions.", "", "", &c.Compacted},
	}
	for s := range assignmentStates {
		list = append(list, instrument{
			"penstock.coordinator.assignments", "{split}", "Splits in each state of the assignment tracker.", "state", s.String(), &c.Assignments[s],
		})
	}
	return list
}

func (c *Coordinator) async() []instrument {
	return []instrument{
		{"penstock.coordinator.async.queued", "{call}", "Calls waiting for a worker.", "", "", &c.AsyncQueued},
		{"penstock.coordinator.async.running", "{call}", "Calls running on a worker.", "", "", &c.AsyncRunning},
		{"penstock.coordinator.async.queue.duration", "s", "Time that calls waited for a worker.", "", "", &c.AsyncQueue},
		{"penstock.coordinator.async.exec.duration", "s", "Time that calls ran.", "", "", &c.AsyncExec},
		{"penstock.coordinator.async.failures", "{call}", "Calls that ended with an error, timeouts included.", "", "", &c.AsyncFailures},
		{"penstock.coordinator.async.timeouts", "{call}", "Calls that ran into their timeout.", "", "", &c.AsyncTimeouts},
		{"penstock.coordinator.async.overlaps", "{call}", "Calls whose key was running already.", "", "", &c.Overlaps},
		{"penstock.coordinator.async.coalesced", "{call}", "Waiting calls that a newer one of their key replaced.", "", "", &c.Coalesced},
		{"penstock.coordinator.async.skipped", "{call}", "Calls dropped because their key was running.", "", "", &c.Skipped},
		{"penstock.coordinator.async.stale", "{result}", "Results dropped because they were no longer current.", "", "", &c.StaleResults},
	}
}
