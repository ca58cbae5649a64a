package broken_test

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/broken"
	"github.com/penstock-dev/penstock/sdk"
)

func harness(defect broken.Defect) conformance.Harness[broken.Split, *broken.System] {
	return conformance.Harness[broken.Split, *broken.System]{
		Backend: broken.NewSystem,
		Source:  func(s *broken.System) sdk.Source[broken.Split] { return broken.New(s, defect) },
		Bounded: func(s *broken.System) sdk.Source[broken.Split] { return broken.NewBounded(s, defect) },
	}
}

func TestTheSoundSourcePasses(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(broken.Sound))
}

// wallHarness is for the clock of the wall, as for a system in another process.
func wallHarness(defect broken.Defect) conformance.Harness[broken.Split, *broken.System] {
	h := harness(defect)
	h.Wall, h.Delay, h.Discovery = true, 200*time.Millisecond, 4*time.Second
	h.Exempt = map[string]string{"enumerator/new_parts_are_found": "the source looks for parts once a minute"}
	return h
}

func TestTheSoundSourcePassesOnTheWall(t *testing.T) {
	t.Parallel()
	conformance.Run(t, wallHarness(broken.Sound))
}

// The cases that run on the wall find there what they are for, and the others say why they do not run.
func TestTheWallFindsADefectAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	results, err := conformance.Examine(t, wallHarness(broken.LagsBehind), "state/")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if (r.Skipped == "") != r.OnTheWall() {
			t.Errorf("%s: skipped because %q", r.Name, r.Skipped)
		}
		if r.Name == string(broken.LagsBehind) && !r.Failed() {
			t.Errorf("%s did not find its defect", r.Name)
		}
	}
}

// further are the cases that may fail with a defect besides the one that it is named after: one mistake may break several promises.
var further = map[broken.Defect][]string{
	broken.IgnoresRecords:    {"codec/round_trip", "state/snapshot_after_every_record"},
	broken.LooksOncePerChunk: {"reader/preempted_turn_ends"},
	broken.IgnoresPreemption: {"reader/time_budget"},
	broken.LosesWhenWoken:    {"reader/no_lost_availability"},
	broken.ForgetsToRing:     {"reader/wakeup_loses_nothing"},
	broken.StartsSplitsLate:  {"enumerator/new_parts_are_found"},
	broken.TakesSplitsTwice:  {"enumerator/new_parts_are_found"},
	broken.EndsEarly:         {"end/never_with_a_pending_error"},
	broken.EndsUntold:        {"end/without_splits"},
	broken.LagsBehind:        {"reader/refused_output_ends_the_turn", "state/restored_splits_may_move_together"},
	broken.StoresFetched: {
		"codec/round_trip", "reader/refused_output_ends_the_turn", "state/restored_splits_may_move_together",
		"state/snapshot_after_every_record",
	},
	broken.SnapshotsRead:   {"state/restored_splits_may_move_together", "state/snapshot_after_every_record"},
	broken.NeedsOpen:       {"close/nothing_left_behind"},
	broken.LeavesTicker:    {"close/nothing_left_behind"},
	broken.ForgetsPosition: {"codec/published_versions", "state/snapshot_after_every_record"},
	broken.AssignsEachTime: {
		"enumerator/backpressure_loses_nothing", "enumerator/new_parts_are_found", "enumerator/owned_splits_are_dropped",
		"enumerator/returned_splits_keep_their_position", "enumerator/snapshot_after_assignment", "enumerator/snapshot_before_assignment",
		"enumerator/snapshot_during_discovery", "enumerator/stays_on_its_loop",
	},
	broken.GivesUpDiscovery: {"enumerator/failed_discovery_is_no_end"},
	broken.ClaimsDiscovery:  {"enumerator/failed_discovery_is_no_end"},
	broken.DiscoversInStart: {
		"close/enumerator_leaves_nothing_behind", "enumerator/snapshot_during_discovery", "enumerator/stays_on_its_loop",
	},
	broken.ForgetsWaiting: {"enumerator/owned_splits_are_dropped"},
	broken.ForgetsKnown: {
		"enumerator/owned_splits_are_dropped", "enumerator/returned_splits_keep_their_position", "enumerator/snapshot_before_assignment",
	},
	broken.RestartsReturned: {"enumerator/snapshot_before_assignment"},
	broken.SharesSlots:      {"end/not_before_no_more_splits"},
	broken.TellsOwnersOnly:  {"enumerator/no_more_splits"},
	broken.TrustsSystem: {
		"close/at_any_time", "close/nothing_left_behind", "close/while_a_fetch_is_stuck", "codec/round_trip",
		"end/never_with_a_pending_error", "end/once_after_the_last_record", "reader/refused_output_ends_the_turn",
		"state/restored_splits_may_move_together", "state/snapshot_after_every_record",
	},
	broken.TrustsProcess: {
		"close/at_any_time", "close/nothing_left_behind", "close/while_a_fetch_is_stuck", "end/never_with_a_pending_error",
		"end/once_after_the_last_record",
	},
	broken.AdoptsOrphans: {
		"enumerator/finished_splits_stay_finished", "enumerator/no_more_splits", "enumerator/owned_splits_are_dropped",
		"enumerator/returned_splits_keep_their_position", "enumerator/snapshot_after_assignment", "enumerator/snapshot_before_assignment",
	},
	broken.RemembersAssigned: {
		"enumerator/finished_splits_stay_finished", "enumerator/no_more_splits", "enumerator/owned_splits_are_dropped", "reader/labels_are_restored",
	},
	broken.KeepsToOwner: {"state/unread_splits_are_kept"},
}

// everywhere are defects with which nearly everything fails.
var everywhere = []broken.Defect{broken.EmitsAtLarge, broken.DiscoversAtLarge}

// alone are the groups of cases that try a part by itself.
var alone = []string{"reader/", "end/", "state/", "checkpoint/", "close/", "codec/", "enumerator/", "metrics/"}

// Each case has a source that fails it, and the others do not fail by the way. Of the cases with the engine, in which most defects show, only
// the one that a defect is named after is run.
func TestEachCaseFindsItsDefect(t *testing.T) {
	t.Parallel()
	for _, c := range conformance.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			selected := alone
			if c.Group() == "engine" {
				selected = append(slices.Clone(alone), c.Name)
			}
			results, err := conformance.Examine(t, harness(broken.Defect(c.Name)), selected...)
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, r := range results {
				if r.Failed() {
					failed = append(failed, r.Name)
				}
			}
			if !slices.Contains(failed, c.Name) {
				t.Errorf("the defect was not found; what failed: %q", failed)
			}
			for _, name := range failed {
				if slices.Contains(everywhere, broken.Defect(c.Name)) {
					break
				}
				if name != c.Name && !slices.Contains(further[broken.Defect(c.Name)], name) {
					t.Errorf("%s failed by the way", name)
				}
			}
		})
	}
}
