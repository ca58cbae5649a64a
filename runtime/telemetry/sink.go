package telemetry

// Sink holds the instruments of one sink task attempt; the sink loop updates them. Take it from [Registry.NewSink].
type Sink struct {
	// Attempt is the number of the writer's attempt.
	Attempt Level
	// Batches, Records and Bytes are what was given to the writer. Records counts elements, among them those of views that
	// are no records.
	Batches, Records, Bytes Counter
	// QueuedBatches and QueuedBytes are what waits in the exchange for this task.
	QueuedBatches, QueuedBytes Level
	// Write, Flush, Prepare and Commit are durations of the writer's calls, failed ones included.
	Write, Flush, Prepare, Commit Histogram
	// Call is when the writer's running call began; clear it when the call returns.
	Call Moment
	// CommitRetries counts commits that failed and were tried again.
	CommitRetries Counter
	// Pending is the number of checkpoints that are prepared and not committed.
	Pending Level
	// Aligning is when the first barrier of the present checkpoint arrived while others are missing.
	Aligning Moment
	// Alignment is the time from the first to the last barrier of a checkpoint.
	Alignment Histogram
}

func (s *Sink) instruments() []instrument {
	return []instrument{
		{"penstock.sink.attempt", "", "Number of the writer's attempt.", "", "", &s.Attempt},
		{"penstock.sink.batches", "{batch}", "Batches given to the writer.", "", "", &s.Batches},
		{"penstock.sink.records", "{record}", "Elements given to the writer.", "", "", &s.Records},
		{"penstock.sink.payload", "By", "Payload given to the writer.", "", "", &s.Bytes},
		{"penstock.sink.queue.batches", "{batch}", "Batches waiting for the sink task.", "", "", &s.QueuedBatches},
		{"penstock.sink.queue.size", "By", "Payload waiting for the sink task.", "", "", &s.QueuedBytes},
		{"penstock.sink.call.duration", "s", "Durations of the writer's calls.", "call", "write", &s.Write},
		{"penstock.sink.call.duration", "s", "Durations of the writer's calls.", "call", "flush", &s.Flush},
		{"penstock.sink.call.duration", "s", "Durations of the writer's calls.", "call", "prepare", &s.Prepare},
		{"penstock.sink.call.duration", "s", "Durations of the writer's calls.", "call", "commit", &s.Commit},
		{"penstock.sink.call.age", "s", "Time that the writer's running call has taken so far; absent between calls.", "", "", &s.Call},
		{"penstock.sink.commit.retries", "{call}", "Commits that failed and were tried again.", "", "", &s.CommitRetries},
		{"penstock.sink.commit.pending", "{checkpoint}", "Checkpoints prepared and not yet committed.", "", "", &s.Pending},
		{"penstock.sink.alignment.age", "s", "Time waited so far for the missing barriers of a checkpoint; absent when none is awaited.", "", "", &s.Aligning},
		{"penstock.sink.alignment.duration", "s", "Time from the first to the last barrier of a checkpoint.", "", "", &s.Alignment},
	}
}
