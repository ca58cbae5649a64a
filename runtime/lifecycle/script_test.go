package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/sdk"
)

// TestMainScripts: `life` is one machine from its beginning, an event per line.
func TestMainScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/main", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var m Machine
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				event := slices.Index(eventNames[:], strings.TrimSpace(line))
				if event < 0 {
					t.Fatalf("%s: no event %q", d.Pos, line)
				}
				if now, err := m.Step(Event(event)); err != nil {
					fmt.Fprintf(&out, "%v\n", err)
				} else {
					fmt.Fprintf(&out, "%s\n", now)
				}
			}
			return out.String()
		})
	})
}

// TestSchemaScripts: `task` is one machine from its beginning, a line per event: EVENT [REQUEST [CHECKPOINT]].
func TestSchemaScripts(t *testing.T) {
	t.Parallel()
	outcomes := [...]string{"goes on", "asks for the checkpoint", "resumes", "drains", "ignored"}
	datadriven.Walk(t, "testdata/schema", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var s Schema
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				outcome, err := s.Step(schemaEvent(t, strings.Fields(line)))
				polls := "no turn may run"
				if s.MayPoll() {
					polls = "turns may run"
				}
				if err != nil {
					fmt.Fprintf(&out, "%s, %s: %v\n", s.State(), polls, err)
				} else {
					fmt.Fprintf(&out, "%s, %s: %s\n", s.State(), polls, outcomes[outcome])
				}
			}
			return out.String()
		})
	})
}

func schemaEvent(t *testing.T, words []string) SchemaEvent {
	t.Helper()
	var numbers [2]uint64
	for i, word := range words[1:] {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = n
	}
	kind := slices.Index(schemaEventNames[:], words[0])
	if kind < 0 {
		t.Fatalf("no event %q", words[0])
	}
	return SchemaEvent{Kind: SchemaEventKind(kind), Request: numbers[0], Checkpoint: sdk.CheckpointID(numbers[1])}
}
