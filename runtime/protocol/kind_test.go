package protocol

import (
	"strings"
	"testing"
)

// TestNamesAreCompleteAndDistinct guards metric labels: every value has a name of its own, and one past the end has none.
func TestNamesAreCompleteAndDistinct(t *testing.T) {
	t.Parallel()
	families := map[string][]string{}
	for _, k := range Kinds() {
		families["kind"] = append(families["kind"], k.String())
		if DurabilityOf(k).String() == "Durability(0)" {
			t.Errorf("%v has no durability", k)
		}
	}
	for _, s := range Statuses() {
		families["status"] = append(families["status"], s.String())
	}
	for _, r := range Reasons() {
		families["reason"] = append(families["reason"], r.String())
	}
	for k := Periodic; k.Known(); k++ {
		families["checkpoint kind"] = append(families["checkpoint kind"], k.String())
	}
	for family, names := range families {
		seen := map[string]bool{}
		for _, name := range names {
			if strings.Contains(name, "(") || seen[name] {
				t.Errorf("%s: name %q is missing or used twice", family, name)
			}
			seen[name] = true
		}
	}
	for _, s := range []string{
		CommandKind(12).String(), Status(8).String(), Reason(13).String(), Durability(5).String(), CheckpointKind(5).String(), Lane(3).String(),
	} {
		if !strings.Contains(s, "(") {
			t.Errorf("a value past the end is called %q: it was added without extending this test", s)
		}
	}
}

// TestReservedKindsComeFromTheEngine pins which commands may use the capacity set aside for controls.
func TestReservedKindsComeFromTheEngine(t *testing.T) {
	t.Parallel()
	normal := map[CommandKind]bool{AddSplits: true, NoMoreSplits: true, SourceEvent: true, PauseOrResume: true}
	for _, k := range Kinds() {
		if k.Reserved() == normal[k] {
			t.Errorf("%v: reserved is %t", k, k.Reserved())
		}
	}
	if CommandKind(200).Reserved() || DurabilityOf(200) != 0 {
		t.Error("an unknown kind has reserved capacity or a durability class")
	}
}
