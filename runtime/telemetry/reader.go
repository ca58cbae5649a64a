package telemetry

import (
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Reader holds the instruments of one reader attempt. The reader loop updates all of them but those of admission, which
// belong to whoever offers a command, and the watchdog's. Take it from [Registry.NewReader].
type Reader struct {
	// Attempt is the number of the attempt.
	Attempt Level

	// Admissions counts offers by status; use [Reader.Admitted].
	Admissions [protocol.InvalidPayload + 1]Counter
	// Refusals counts offers that were not accepted by reason; use [Reader.Admitted].
	Refusals [protocol.ReasonReserved + 1]Counter
	// Admission is how long an offer took on the sender's goroutine.
	Admission Histogram

	// MailboxCommands and MailboxBytes are what waits in the mailbox, reserved capacity included.
	MailboxCommands, MailboxBytes Level
	// ReservedCommands and ReservedBytes are what of it draws on reserved capacity.
	ReservedCommands, ReservedBytes Level
	// OldestCommand is when the command at the head of the mailbox was admitted.
	OldestCommand Moment
	// QueueWait is the time from admission to the start of a command's application.
	QueueWait Histogram
	// CommandService is the time that applying a command took.
	CommandService Histogram
	// StaleCommands counts commands of an old epoch that were discarded when their turn came.
	StaleCommands Counter

	// Records and Bytes are what was emitted downstream.
	Records, Bytes Counter
	// Turns counts poll turns by what they returned; use [Reader.Turned].
	Turns [sdk.EndOfInput + 1]Counter
	// Poll is the duration of turns.
	Poll Histogram
	// Turn is when the running turn began; clear it when the turn ends.
	Turn Moment
	// Wakeups counts calls of the connector's Wakeup.
	Wakeups Counter
	// SoftViolations and HardViolations count turns longer than the soft and the hard limit.
	SoftViolations, HardViolations Counter
	// OutputBlocked adds up the time in which the reader had work and the exchange no credit.
	OutputBlocked Stopwatch
	// FencedEmits counts records that were refused because the attempt is no longer current.
	FencedEmits Counter

	// Splits is the number of unfinished splits that the reader holds; FinishedSplits counts those that ended.
	Splits         Level
	FinishedSplits Counter

	// Stages are the durations of the reader's part of checkpoints.
	Stages [readerStages]Histogram
	// AppliedEpoch and AppliedSequence are the highest applied command of the newest epoch: the watermark without its gaps.
	AppliedEpoch, AppliedSequence Level
	// WatermarkGaps is the number of sequences below AppliedSequence that are not applied yet.
	WatermarkGaps Level
}

// ReaderStage is a part of the time that a checkpoint takes in a reader.
type ReaderStage uint8

// Stages of a checkpoint in a reader, in order.
const (
	StageBarrierWait ReaderStage = iota // from the barrier's admission to its application
	StageSnapshot                       // of the connector's state and the metadata
	StageRegister                       // handing the state over
	StageForward                        // until the barrier is accepted downstream

	readerStages
)

func (s ReaderStage) String() string {
	return nameOf(int(s), "barrier_wait", "snapshot", "register", "forward")
}

// Admitted counts an answered offer.
func (r *Reader) Admitted(status protocol.Status, reason protocol.Reason) {
	if int(status) < len(r.Admissions) {
		r.Admissions[status].Inc()
	}
	if status != protocol.Accepted && int(reason) < len(r.Refusals) {
		r.Refusals[reason].Inc()
	}
}

// Turned counts a finished turn.
func (r *Reader) Turned(status sdk.PollStatus) {
	if int(status) < len(r.Turns) {
		r.Turns[status].Inc()
	}
}

func (r *Reader) instruments() []instrument {
	return append(append(append(r.admission(), r.mailbox()...), r.polling()...), r.checkpointing()...)
}

func (r *Reader) admission() []instrument {
	var list []instrument
	for _, s := range protocol.Statuses() {
		list = append(list, instrument{
			"penstock.reader.admissions", "{command}", "Offered commands by answer.", "status", s.String(), &r.Admissions[s],
		})
	}
	for _, reason := range protocol.Reasons()[1:] {
		list = append(list, instrument{
			"penstock.reader.admission.refusals", "{command}", "Offered commands that were not accepted, by reason.", "reason",
			reason.String(),
			rare{&r.Refusals[reason]},
		})
	}
	return append(list, instrument{
		"penstock.reader.admission.duration", "s", "Time that an offer took on the sender's goroutine.", "", "", &r.Admission,
	})
}

func (r *Reader) mailbox() []instrument {
	return []instrument{
		{"penstock.reader.mailbox.commands", "{command}", "Commands waiting in the mailbox.", "", "", &r.MailboxCommands},
		{"penstock.reader.mailbox.size", "By", "Payload of the commands waiting in the mailbox.", "", "", &r.MailboxBytes},
		{"penstock.reader.mailbox.reserved.commands", "{command}", "Waiting commands that hold reserved capacity.", "", "", &r.ReservedCommands},
		{"penstock.reader.mailbox.reserved.size", "By", "Payload of the waiting commands that hold reserved capacity.", "", "", &r.ReservedBytes},
		{"penstock.reader.mailbox.oldest.age", "s", "Age of the oldest waiting command; absent when none waits.", "", "", &r.OldestCommand},
		{"penstock.reader.command.queue.duration", "s", "Time from a command's admission to its application.", "", "", &r.QueueWait},
		{"penstock.reader.command.service.duration", "s", "Time that applying a command took.", "", "", &r.CommandService},
		{"penstock.reader.commands.stale", "{command}", "Commands of an old coordinator epoch, discarded at application.", "", "", &r.StaleCommands},
	}
}

func (r *Reader) polling() []instrument {
	list := []instrument{
		{"penstock.reader.attempt", "", "Number of the running attempt.", "", "", &r.Attempt},
		{"penstock.reader.records", "{record}", "Records emitted downstream.", "", "", &r.Records},
		{"penstock.reader.payload", "By", "Payload emitted downstream.", "", "", &r.Bytes},
		{"penstock.reader.poll.duration", "s", "Duration of poll turns.", "", "", &r.Poll},
		{"penstock.reader.poll.time", "s", "Time spent in poll turns, per reader.", "", "", sum{&r.Poll}},
		{"penstock.reader.turn.age", "s", "Time that the running turn has taken so far; absent between turns.", "", "", &r.Turn},
		{"penstock.reader.wakeups", "{call}", "Calls of the connector's Wakeup.", "", "", &r.Wakeups},
		{"penstock.reader.turn.violations", "{turn}", "Turns beyond a time limit.", "limit", "soft", &r.SoftViolations},
		{"penstock.reader.turn.violations", "{turn}", "Turns beyond a time limit.", "limit", "hard", &r.HardViolations},
		{"penstock.reader.output.blocked", "s", "Time with work to do and no credit to emit, the present spell included.", "", "", &r.OutputBlocked},
		{"penstock.reader.emits.fenced", "{record}", "Records refused because the attempt was no longer current.", "", "", &r.FencedEmits},
		{"penstock.reader.splits", "{split}", "Unfinished splits held.", "", "", &r.Splits},
		{"penstock.reader.splits.finished", "{split}", "Splits that ended.", "", "", &r.FinishedSplits},
	}
	for status, name := range []string{"nothing_available", "more_available", "end_of_input"} {
		list = append(list, instrument{
			"penstock.reader.turns", "{turn}", "Poll turns by what they returned.", "status", name, &r.Turns[status],
		})
	}
	return list
}

func (r *Reader) checkpointing() []instrument {
	list := []instrument{
		{"penstock.reader.applied.epoch", "", "Coordinator epoch of the newest applied command.", "", "", &r.AppliedEpoch},
		{"penstock.reader.applied.sequence", "", "Highest applied sequence of that epoch.", "", "", &r.AppliedSequence},
		{"penstock.reader.applied.gaps", "{command}", "Sequences below the highest applied one that are not applied yet.", "", "", &r.WatermarkGaps},
	}
	for s := range readerStages {
		list = append(list, instrument{
			"penstock.reader.checkpoint.duration", "s", "Durations of a reader's part of checkpoints.", "stage", s.String(), &r.Stages[s],
		})
	}
	return list
}
