package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options are the engine's production settings. A connector cannot change them, and none is reloaded while a job runs. Start
// from [DefaultOptions]; [Settings] lists all with their meaning.
type Options struct {
	MailboxCommands     int
	MailboxBytes        int64
	ReservedCommands    int
	ReservedBytes       int64
	ProcessMailboxBytes int64
	CommandPayloadBytes int64
	AsyncConcurrency    int

	PollRecords     int
	PollBytes       int64
	PollSoft        time.Duration
	PollHard        time.Duration
	PollCancel      time.Duration
	AdmissionBudget time.Duration
	RetryInitial    time.Duration
	RetryMax        time.Duration
	TrackerEntries  int
	TrackerBytes    int64

	ExchangeCredit     int
	CheckpointTimeout  time.Duration
	CheckpointFailures int
	CommitAttempts     int
	StopTimeout        time.Duration
	ProbeTimeout       time.Duration

	RestartInitial time.Duration
	RestartMax     time.Duration
	RestartLimit   int
	RestartWindow  time.Duration

	// Lane is "auto", "a" (managed) or "b" (legacy).
	Lane string
	// Allowlist names the connectors that may run in the managed lane; empty means every one with the capability and a recorded pass of
	// the conformance suite. A connector that it names needs no such record: somebody has decided.
	Allowlist []string
	// KillSwitch keeps new deployments and restores out of the managed lane. Running jobs are not touched.
	KillSwitch bool
}

// DefaultOptions are the initial production defaults.
func DefaultOptions() Options {
	return Options{
		MailboxCommands: 1024, MailboxBytes: 4 << 20, ReservedCommands: 64, ReservedBytes: 256 << 10,
		ProcessMailboxBytes: 256 << 20, CommandPayloadBytes: 512 << 10, AsyncConcurrency: 4,
		PollRecords: 64, PollBytes: 1 << 20, PollSoft: 5 * time.Millisecond, PollHard: time.Second, PollCancel: 30 * time.Second,
		AdmissionBudget: 5 * time.Millisecond, RetryInitial: 10 * time.Millisecond, RetryMax: time.Second,
		TrackerEntries: 100_000, TrackerBytes: 64 << 20,
		ExchangeCredit: 32, CheckpointTimeout: 10 * time.Minute, CheckpointFailures: 5, CommitAttempts: 10,
		StopTimeout: 2 * time.Minute, ProbeTimeout: 10 * time.Second,
		RestartInitial: 500 * time.Millisecond, RestartMax: 30 * time.Second, RestartLimit: 10, RestartWindow: 10 * time.Minute,
		Lane: "auto",
	}
}

// Setting is one option for tools: its value can be read and set through Value, a pointer into the [Options] that it was
// made from: *int, *int64, *time.Duration, *bool, *string or *[]string.
type Setting struct {
	Name    string // as in the runtime section of a job file
	Value   any
	Unit    string // "", "bytes", "records", "commands", ...
	Meaning string
	Min     int64    // for numbers; durations in nanoseconds
	Allowed []string // for strings
}

// Settings lists the options of o in a fixed order.
func Settings(o *Options) []Setting {
	return []Setting{
		{"mailbox_commands", &o.MailboxCommands, "commands", "ordinary commands that may wait for one reader", 1, nil},
		{"mailbox_bytes", &o.MailboxBytes, "bytes", "payload of ordinary commands that may wait for one reader", 1, nil},
		{"reserved_commands", &o.ReservedCommands, "commands", "barriers and callbacks that may wait for one reader", 8, nil},
		{"reserved_bytes", &o.ReservedBytes, "bytes", "payload of barriers and callbacks that may wait for one reader", 4096, nil},
		{"process_mailbox_bytes", &o.ProcessMailboxBytes, "bytes", "payload that may wait for all readers of the process together", 1, nil},
		{"command_payload_bytes", &o.CommandPayloadBytes, "bytes", "payload of one command", 1024, nil},
		{"async_concurrency", &o.AsyncConcurrency, "calls", "slow enumerator calls that run at the same time", 1, nil},
		{"poll_records", &o.PollRecords, "records", "records of one poll turn", 1, nil},
		{"poll_bytes", &o.PollBytes, "bytes", "payload of one poll turn; the record that crosses it still passes", 1, nil},
		{"poll_soft", &o.PollSoft, "", "time of one poll turn after which the reader yields", int64(time.Microsecond), nil},
		{"poll_hard", &o.PollHard, "", "time of one poll turn after which the reader is woken up", int64(time.Millisecond), nil},
		{"poll_cancel", &o.PollCancel, "", "time of a connector call after which its task fails and is abandoned", int64(10 * time.Millisecond), nil},
		{"admission_budget", &o.AdmissionBudget, "", "admission p99 above which a warning is logged", int64(time.Microsecond), nil},
		{"retry_initial", &o.RetryInitial, "", "first pause before a refused command, a failed commit, or a checkpoint that was given up is tried again", int64(time.Millisecond), nil},
		{"retry_max", &o.RetryMax, "", "longest such pause", int64(time.Millisecond), nil},
		{"tracker_entries", &o.TrackerEntries, "splits", "assigned splits that no completed checkpoint contains yet", 1, nil},
		{"tracker_bytes", &o.TrackerBytes, "bytes", "encoded size of these splits", 1024, nil},
		{"exchange_credit", &o.ExchangeCredit, "batches", "turns that may wait between a reader and a sink task", 1, nil},
		{"checkpoint_timeout", &o.CheckpointTimeout, "", "time after which an incomplete checkpoint is given up", int64(10 * time.Millisecond), nil},
		{"checkpoint_failures", &o.CheckpointFailures, "checkpoints", "checkpoints in a row that may fail to be stored before the job fails", 1, nil},
		{"commit_attempts", &o.CommitAttempts, "tries", "tries of a commit before its task is restarted, which commits it again", 1, nil},
		{"stop_timeout", &o.StopTimeout, "", "time for the savepoint of a graceful stop", int64(time.Millisecond), nil},
		{"probe_timeout", &o.ProbeTimeout, "", "time for the source's first contact", int64(time.Millisecond), nil},
		{"restart_initial", &o.RestartInitial, "", "pause before the first restart after a failure; doubles each time", int64(time.Millisecond), nil},
		{"restart_max", &o.RestartMax, "", "longest pause before a restart", int64(time.Millisecond), nil},
		{"restart_limit", &o.RestartLimit, "restarts", "restarts within restart_window before the job fails; 0 fails at the first failure", 0, nil},
		{"restart_window", &o.RestartWindow, "", "time in which restarts are counted", int64(time.Millisecond), nil},
		{"lane", &o.Lane, "", "runtime of the source: the managed one (a), the legacy one (b), or what it is eligible for", 0, []string{"auto", "a", "b"}},
		{"allowlist", &o.Allowlist, "", "connectors that may run in the managed lane; empty allows all that are capable and passed the conformance suite", 0, nil},
		{"kill_switch", &o.KillSwitch, "", "keeps new deployments and restores out of the managed lane", 0, nil},
	}
}

// OptionError is a problem with one option.
type OptionError struct {
	Name    string // as in [Setting]
	Problem string // with the value and what is allowed
}

func (e *OptionError) Error() string { return "runtime." + e.Name + ": " + e.Problem }

// Validate reports every problem at once, each an [OptionError], joined.
func (o Options) Validate() error {
	var errs []error
	for _, s := range Settings(&o) {
		if err := s.validate(); err != nil {
			errs = append(errs, err)
		}
	}
	atMost := func(name string, v time.Duration, limit string, max time.Duration) {
		if v > max {
			errs = append(errs, &OptionError{name, fmt.Sprintf("%s is longer than %s (%s)", v, limit, max)})
		}
	}
	atMost("poll_soft", o.PollSoft, "poll_hard", o.PollHard)
	atMost("poll_hard", o.PollHard, "poll_cancel", o.PollCancel)
	atMost("retry_initial", o.RetryInitial, "retry_max", o.RetryMax)
	atMost("restart_initial", o.RestartInitial, "restart_max", o.RestartMax)
	if o.CommandPayloadBytes > o.MailboxBytes {
		errs = append(errs, &OptionError{"command_payload_bytes", fmt.Sprintf("%d is more than mailbox_bytes (%d): such a command could never be sent",
			o.CommandPayloadBytes, o.MailboxBytes)})
	}
	return errors.Join(errs...)
}

func (s Setting) validate() error {
	var n int64
	switch v := s.Value.(type) {
	case *int:
		n = int64(*v)
	case *int64:
		n = *v
	case *time.Duration:
		if int64(*v) < s.Min {
			return &OptionError{s.Name, fmt.Sprintf("%s is too short (at least %s)", *v, time.Duration(s.Min))}
		}
		return nil
	case *string:
		if !slices.Contains(s.Allowed, *v) {
			return &OptionError{s.Name, fmt.Sprintf("%q is unknown (%s)", *v, strings.Join(s.Allowed, ", "))}
		}
		return nil
	default:
		return nil
	}
	if n < s.Min {
		return &OptionError{s.Name, fmt.Sprintf("%d is too small (at least %d)", n, s.Min)}
	}
	return nil
}
