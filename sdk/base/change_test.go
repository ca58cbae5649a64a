package base

import (
	"reflect"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// Per split only the outcome is told, and nothing that the split reader knows already.
func TestChangesAreMerged(t *testing.T) {
	t.Parallel()
	type step = func(*changes[at])
	add := func(name string, next int64) step { return func(c *changes[at]) { c.add(at{name, next}) } }
	remove := func(name string) step { return func(c *changes[at]) { c.remove(sdk.SplitID(name)) } }
	set := func(name string, p pausing) step { return func(c *changes[at]) { c.setPause(sdk.SplitID(name), p) } }
	for _, tc := range []struct {
		name  string
		steps []step
		want  []Change[at]
	}{
		{"pause and resume", []step{set("has", pause), set("has", resume)}, nil},
		{"resume what runs", []step{set("has", resume)}, nil},
		{"pause", []step{set("has", pause)}, []Change[at]{{Paused: []sdk.SplitID{"has"}}}},
		{"pause a stranger", []step{set("who", pause)}, nil},
		{"add paused", []step{add("new", 3), set("new", pause)}, []Change[at]{{Added: []at{{"new", 3}}, Paused: []sdk.SplitID{"new"}}}},
		{"add and remove", []step{add("new", 3), remove("new")}, nil},
		{"remove", []step{remove("has")}, []Change[at]{{Removed: []sdk.SplitID{"has"}}}},
		{"remove what it finished itself", []step{remove("ended")}, nil},
		{"remove and add elsewhere", []step{remove("has"), add("has", 9)}, []Change[at]{{Removed: []sdk.SplitID{"has"}}, {Added: []at{{"has", 9}}}}},
		{"pause, remove, add", []step{set("has", pause), remove("has"), add("has", 9)}, []Change[at]{{Removed: []sdk.SplitID{"has"}}, {Added: []at{{"has", 9}}}}},
	} {
		var known roster
		known.add("has")
		known.add("has")
		var c changes[at]
		for _, s := range tc.steps {
			s(&c)
		}
		if got := apply(&known, &c); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: told %+v, want %+v", tc.name, got, tc.want)
		}
		active := 0
		for _, paused := range known.paused {
			if !paused {
				active++
			}
		}
		if known.active != active {
			t.Errorf("%s: %d active, want %d", tc.name, known.active, active)
		}
	}
}
