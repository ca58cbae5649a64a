package conformance

import (
	"slices"
	"testing/synctest"
	"time"
)

// wall lists the cases that also run on the clock of the wall. Of the others some let an hour pass, look at all goroutines of their bubble, or take
// a call that lasts any time at all for one that waits; and some look at what is the same whatever the system does.
var wall = []string{
	"reader/backlog_comes_whole",
	"reader/record_budget",
	"reader/byte_budget",
	"reader/wakeup_loses_nothing",
	"reader/no_lost_availability",
	"reader/refused_output_ends_the_turn",
	"reader/added_split_is_served",
	"reader/duplicate_assignment",
	"reader/paused_split_stays",
	"reader/emitted_records_do_not_change",
	"reader/record_names_its_split",
	"end/once_after_the_last_record",
	"end/without_splits",
	"end/never_with_a_pending_error",
	"end/finished_splits_are_evidence",
	"state/snapshot_after_every_record",
	"state/position_moves_in_turns_only",
	"state/snapshots_are_values",
	"state/restored_splits_may_move_together",
	"checkpoint/notices_in_any_order",
	"close/at_any_time",
	"codec/round_trip",
	"enumerator/new_parts_are_found",
	"enumerator/no_more_splits",
	"engine/reads_everything",
	"engine/fewer_splits_than_readers",
	"engine/bounded_job_ends",
	"engine/a_job_is_killed",
	"engine/rescales",
}

// OnTheWall reports whether the case also runs on the clock of the wall, against a system in another process ([Harness.Wall]).
func (c Case) OnTheWall() bool { return slices.Contains(wall, c.Name) }

// notOnTheWall is why the others are skipped there.
const notOnTheWall = "it needs a bubble, or is the same there: the system is in another process (Harness.Wall)"

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of the bubble
}

// settle waits until nothing moves any more. Only a bubble can tell.
func (x *trial[S, B]) settle() {
	if !x.h.Wall {
		synctest.Wait()
	}
}

// bearable is how long something may last that takes no time in a bubble, or a little: on the wall the machine does other things as well.
func (x *trial[S, B]) bearable(d time.Duration) time.Duration {
	if x.h.Wall {
		return 10 * d
	}
	return d
}

// rounds is how often something random is done.
func (x *trial[S, B]) rounds(n int) int {
	if x.h.Wall {
		return n / 4
	}
	return n
}

// moment is until a checkpoint that was asked for begins.
func (x *trial[S, B]) moment() time.Duration {
	if x.h.Wall {
		return 10 * time.Millisecond
	}
	return time.Second
}

// inTime is how long it may take until something comes.
func (x *trial[S, B]) inTime() time.Duration { return x.bearable(x.h.Delay) }
