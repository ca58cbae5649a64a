package broken

// Defect is the one thing that a source does wrong. It has the name of the case that finds it.
type Defect string

// Sound is no defect.
const Sound Defect = ""

// Defects of readers.
const (
	WaitsInPoll        Defect = "reader/poll_never_blocks"             // for data, ten milliseconds
	SkipsPlace         Defect = "reader/backlog_comes_whole"           // the thousandth
	IgnoresRecords     Defect = "reader/record_budget"                 // looks at bytes and time only
	KeepsLargeRecords  Defect = "reader/byte_budget"                   // does not emit what is larger than what is left
	LooksOncePerChunk  Defect = "reader/time_budget"                   // asks for records and bytes itself, and for the rest now and then
	IgnoresPreemption  Defect = "reader/preempted_turn_ends"           // asks for records and bytes itself
	DeafToWakeup       Defect = "reader/wakeup_ends_a_turn"            // Wakeup does nothing
	LosesWhenWoken     Defect = "reader/wakeup_loses_nothing"          // has advanced when its context ends
	ForgetsToRing      Defect = "reader/no_lost_availability"          // says that nothing is there after a wakeup
	RingsForNothing    Defect = "reader/idle_reader_waits"             // a hundred times a second
	IgnoresRefusal     Defect = "reader/refused_output_ends_the_turn"  // emits on
	StartsSplitsLate   Defect = "reader/added_split_is_served"         // when the others have data
	TakesSplitsTwice   Defect = "reader/duplicate_assignment"          // reads each copy
	IgnoresPause       Defect = "reader/paused_split_stays"            // PauseOrResume does nothing
	ReusesBuffers      Defect = "reader/emitted_records_do_not_change" // one for all records
	EmitsAtLarge       Defect = "reader/stays_on_its_loop"             // the last value of a chunk, from where it is fetched
	DropsLabels        Defect = "reader/labels_are_restored"
	HidesSplit         Defect = "reader/record_names_its_split"           // records name none
	EndsEarly          Defect = "end/once_after_the_last_record"          // when all is fetched
	EndsUntold         Defect = "end/not_before_no_more_splits"           // when it has no split left
	NeverEndsIdle      Defect = "end/without_splits"                      // unless it had a split
	EndsInsteadOfError Defect = "end/never_with_a_pending_error"          // a fetch that fails is the end of its split
	HidesFinished      Defect = "end/finished_splits_are_evidence"        // never calls FinishSplit
	LagsBehind         Defect = "state/snapshot_after_every_record"       // its position is that of the last record, not of the next
	StoresFetched      Defect = "state/position_moves_in_turns_only"      // its position is that of the fetch
	SnapshotsRead      Defect = "state/unread_splits_are_kept"            // only splits of which something was read
	SharesSnapshot     Defect = "state/snapshots_are_values"              // Snapshot answers its own slice
	ReliesOnOrder      Defect = "state/restored_splits_may_move_together" // positions go to splits in the order of their ids
	WantsKnownIDs      Defect = "checkpoint/notices_in_any_order"         // an unknown checkpoint is an error
	KeepsSnapshots     Defect = "checkpoint/missing_notices_cost_nothing"
	NeedsOpen          Defect = "close/at_any_time"            // Close uses what Open makes
	DeafWhenStuck      Defect = "close/while_a_fetch_is_stuck" // asks without a context
	LeavesGoroutine    Defect = "close/nothing_left_behind"    // that waits for ever
	LeavesTicker       Defect = "close/enumerator_leaves_nothing_behind"
)

// Defects of codecs and metrics.
const (
	ForgetsPosition Defect = "codec/round_trip"         // beyond ten
	ChangedEncoding Defect = "codec/published_versions" // without a new version
	IgnoresVersion  Defect = "codec/unknown_version"
	IgnoresRest     Defect = "codec/truncated_or_longer" // of the bytes
	PanicsOnDamage  Defect = "codec/damaged_bytes"       // looks up what it has read in a table
	CountsNothing   Defect = "metrics/are_there"
	NamesBySplit    Defect = "metrics/are_bounded"
	SendsUndeclared Defect = "metrics/events_are_declared_and_not_needed"
)

// Defects of enumerators.
const (
	AssignsEachTime   Defect = "enumerator/assigns_each_split_once" // whatever a discovery lists
	DiscoversAtLarge  Defect = "enumerator/stays_on_its_loop"       // on a goroutine of its own, which assigns
	DiscoversInStart  Defect = "enumerator/calls_never_block"
	GivesUpDiscovery  Defect = "enumerator/failing_discovery"          // after an error
	HidesFailure      Defect = "enumerator/failed_discovery_is_no_end" // of a discovery, which then has found nothing
	DiscoversOnce     Defect = "enumerator/new_parts_are_found"
	ClaimsDiscovery   Defect = "enumerator/snapshot_during_discovery"  // its state says that it has been done
	ForgetsWaiting    Defect = "enumerator/snapshot_before_assignment" // its state holds what is known only
	ForgetsKnown      Defect = "enumerator/snapshot_after_assignment"  // its state holds what is waiting only
	IgnoresOwned      Defect = "enumerator/owned_splits_are_dropped"
	RestartsReturned  Defect = "enumerator/returned_splits_keep_their_position"
	DropsRefused      Defect = "enumerator/backpressure_loses_nothing"
	TellsOnce         Defect = "enumerator/no_more_splits" // each reader, whatever attempt it is
	TakesFinishedBack Defect = "enumerator/finished_splits_stay_finished"
	ForgivesDamage    Defect = "enumerator/damaged_state_is_refused" // starts without the state
)

// Defects that only show when the parts work together.
const (
	SharesSlots       Defect = "engine/reads_everything"                   // readers of one process share answers by slot
	WaitsForSplit     Defect = "engine/fewer_splits_than_readers"          // in Poll, when it is not the first reader
	TellsOwnersOnly   Defect = "engine/bounded_job_ends"                   // that no more splits follow
	AsksInSnapshot    Defect = "engine/checkpoints_while_the_system_hangs" // how far the system is
	TrustsSystem      Defect = "engine/a_job_is_killed"                    // goes on where the system last answered
	TrustsProcess     Defect = "engine/reader_dies"                        // goes on where the attempt before was
	AdoptsOrphans     Defect = "engine/coordinator_dies"                   // takes the splits of readers that have not registered yet for nobody's
	RemembersAssigned Defect = "engine/both_die"                           // the process does, so that a new epoch does not assign it
	KeepsToOwner      Defect = "engine/rescales"                           // a split stays with the first reader that had it
	SwallowsErrors    Defect = "engine/system_fails"                       // a fetch that fails is the last
)
