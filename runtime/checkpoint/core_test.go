package checkpoint_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

var (
	errScripted = errors.New("scripted failure")
	coreKinds   = map[string]protocol.CheckpointKind{
		"periodic": protocol.Periodic, "savepoint": protocol.Savepoint, "final": protocol.Final, "stop": protocol.Stop,
	}
)

// coreScript drives a core by hand; its clock moves one second per line.
type coreScript struct {
	core *checkpoint.Core
	now  time.Time
}

// TestCoreScripts: `new [readers=N] [sinks=N] [timeout=D] [retry=D] [retry-max=D]` makes a core, `do` runs a line per command:
//
//	trigger N [KIND]
//	coordinator N [owing]
//	reader N I [ended]
//	sink N I
//	stored N [fails]
//	committed N I
//	lost
//	wait DURATION
//	wake
func TestCoreScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/core", func(t *testing.T, path string) {
		s := &coreScript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				readers, sinks := 2, 2
				d.MaybeScanArgs(t, "readers", &readers)
				d.MaybeScanArgs(t, "sinks", &sinks)
				s.now = time.Unix(1000, 0)
				s.core = checkpoint.NewCore(protocol.Manifest{Job: "job", Parallelism: readers}, sinks, checkpoint.Limits{
					Timeout: duration(t, d, "timeout", "1m"), RetryInitial: duration(t, d, "retry", "1s"), RetryMax: duration(t, d, "retry-max", "1m"),
				})
				return "ok\n"
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					s.now = s.now.Add(time.Second)
					stale := s.core.Stale()
					fmt.Fprintf(&out, "%s:", strings.TrimSpace(line))
					s.line(t, &out, strings.Fields(line))
					if s.core.Stale() != stale {
						fmt.Fprint(&out, " stale")
					}
					fmt.Fprintf(&out, " [%s %d]\n", s.core.Phase(), s.core.Pending())
				}
				return out.String()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func duration(t *testing.T, d *datadriven.TestData, name, value string) time.Duration {
	t.Helper()
	d.MaybeScanArgs(t, name, &value)
	v, err := time.ParseDuration(value)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *coreScript) line(t *testing.T, out io.Writer, f []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	flag := func(i int, word string) bool { return len(f) > i && f[i] == word }
	var id sdk.CheckpointID
	if len(f) > 1 && f[0] != "wait" {
		id = sdk.CheckpointID(number(1))
	}
	var e checkpoint.Event
	switch f[0] {
	case "trigger":
		kind := protocol.Periodic
		if len(f) > 2 {
			kind = coreKinds[f[2]]
		}
		e = checkpoint.Trigger{ID: id, Kind: kind, LastAttempt: 9, Now: s.now}
	case "coordinator":
		e = checkpoint.CoordinatorTaken{ID: id, State: protocol.CoordinatorState{Epoch: 3, Owing: flag(2, "owing")}, Now: s.now}
	case "reader":
		e = checkpoint.ReaderTaken{ID: id, State: protocol.ReaderState{Reader: sdk.ReaderID(number(2)), Ended: flag(3, "ended")}, Now: s.now}
	case "sink":
		e = checkpoint.SinkTaken{ID: id, State: protocol.SinkState{Task: number(2)}, Now: s.now}
	case "stored":
		stored := checkpoint.Stored{ID: id, Size: 77, Now: s.now}
		if flag(2, "fails") {
			stored.Err = errScripted
		}
		e = stored
	case "committed":
		e = checkpoint.Committed{ID: id, Task: number(2), Now: s.now}
	case "lost":
		e = checkpoint.Lost{Reason: telemetry.AbortReader, Err: errScripted, Now: s.now}
	case "wait":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(d - time.Second)
		e = checkpoint.Tick{Now: s.now}
	case "wake":
		if at, ok := s.core.Wake(s.now); ok {
			fmt.Fprintf(out, " in %s", at.Sub(s.now))
		} else {
			fmt.Fprint(out, " none")
		}
		return
	default:
		t.Fatalf("unknown line %v", f)
	}
	for _, effect := range s.core.Step(e) {
		fmt.Fprintf(out, " %s", describe(effect))
	}
}

func describe(e checkpoint.Effect) string {
	switch e := e.(type) {
	case checkpoint.Cut:
		return fmt.Sprintf("Cut{%d %s}", e.ID, e.Kind)
	case checkpoint.Store:
		m := e.Manifest
		var parts []string
		for _, r := range m.Readers {
			parts = append(parts, fmt.Sprintf("r%d", r.Reader))
		}
		for _, x := range m.Sinks {
			parts = append(parts, fmt.Sprintf("s%d", x.Task))
		}
		return fmt.Sprintf("Store{%d %s epoch=%d attempt=%d took=%s %s}", m.ID, m.Kind, m.Coordinator.Epoch, m.LastAttempt,
			m.Completed.Sub(m.Triggered), strings.Join(parts, " "))
	case checkpoint.Complete:
		return fmt.Sprintf("Complete{%d}", e.Manifest.ID)
	case checkpoint.Finished:
		return fmt.Sprintf("Finished{%d size=%d stages=%v}", e.Manifest.ID, e.Size, e.Stages)
	case checkpoint.Aborted:
		return fmt.Sprintf("Aborted{%d %s %s: %v}", e.ID, e.Kind, e.Reason, e.Err)
	default:
		return fmt.Sprintf("%T", e)
	}
}

func TestTimeoutCanBeTold(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	c := checkpoint.NewCore(protocol.Manifest{Parallelism: 1}, 1, checkpoint.Limits{Timeout: time.Minute})
	c.Step(checkpoint.Trigger{ID: 1, Kind: protocol.Periodic, Now: start})
	effects := c.Step(checkpoint.Tick{Now: start.Add(time.Minute)})
	if a, ok := effects[0].(checkpoint.Aborted); !ok || !errors.Is(a.Err, checkpoint.ErrTimeout) || a.Reason != telemetry.AbortTimeout {
		t.Errorf("effects are %+v", effects)
	}
}

// Random events, most of them late, repeated or of another checkpoint. Whatever happens: one checkpoint at a time, stored only
// with all parts, each once; completed only after it was stored; over exactly once.
func TestCoreModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := coreModel{readers: rapid.IntRange(1, 3).Draw(t, "readers"), sinks: rapid.IntRange(1, 3).Draw(t, "sinks"), now: time.Unix(1000, 0)}
		m.core = checkpoint.NewCore(protocol.Manifest{Parallelism: m.readers}, m.sinks, checkpoint.Limits{
			Timeout: time.Hour, RetryInitial: modelPauses[0], RetryMax: modelPauses[len(modelPauses)-1],
		})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			m.step(t)
		}
	})
}

// modelPauses are those after the first, second and any further checkpoint in a row that was given up.
var modelPauses = [...]time.Duration{2 * time.Second, 4 * time.Second, 7 * time.Second}

type coreModel struct {
	core           *checkpoint.Core
	readers, sinks int
	now            time.Time
	givenUp        int       // in a row
	hold           time.Time // until then none starts

	id        sdk.CheckpointID // newest triggered
	phase     checkpoint.Phase
	parts     map[string]bool
	committed map[int]bool
}

func (m *coreModel) step(t *rapid.T) {
	m.now = m.now.Add(time.Second)
	id := m.id
	if rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
		id += sdk.CheckpointID(rapid.SampledFrom([]int{-1, 1}).Draw(t, "by"))
	}
	current := id == m.id
	want := ""
	var e checkpoint.Event
	part := func(name string) {
		if m.phase == checkpoint.Cutting && current && !m.parts[name] {
			if m.parts[name] = true; len(m.parts) == 1+m.readers+m.sinks {
				m.phase, want = checkpoint.Storing, "Store"
			}
		}
	}
	switch op := rapid.IntRange(0, 11).Draw(t, "op"); op {
	case 0, 1:
		if e = (checkpoint.Trigger{ID: m.id + 1, Kind: protocol.Periodic, Now: m.now}); m.phase == checkpoint.Idle && !m.now.Before(m.hold) {
			m.id++
			m.phase, m.parts, m.committed, want = checkpoint.Cutting, map[string]bool{}, map[int]bool{}, "Cut"
		}
	case 2, 3:
		e = checkpoint.CoordinatorTaken{ID: id, Now: m.now}
		part("coordinator")
	case 4, 5, 6:
		i := rapid.IntRange(0, m.readers-1).Draw(t, "reader")
		e = checkpoint.ReaderTaken{ID: id, State: protocol.ReaderState{Reader: sdk.ReaderID(i)}, Now: m.now}
		part(fmt.Sprintf("reader %d", i))
	case 7, 8:
		i := rapid.IntRange(0, m.sinks-1).Draw(t, "sink")
		e = checkpoint.SinkTaken{ID: id, State: protocol.SinkState{Task: i}, Now: m.now}
		part(fmt.Sprintf("sink %d", i))
	case 9:
		var err error
		if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
			err = errScripted
		}
		e = checkpoint.Stored{ID: id, Err: err, Now: m.now}
		if m.phase == checkpoint.Storing && current {
			m.phase, want = checkpoint.Committing, "Complete"
			if err != nil {
				m.phase, want = checkpoint.Idle, "Aborted"
				m.giveUp()
			} else {
				m.givenUp = 0
			}
		}
	case 10:
		i := rapid.IntRange(0, m.sinks-1).Draw(t, "task")
		e = checkpoint.Committed{ID: id, Task: i, Now: m.now}
		if m.phase == checkpoint.Committing && current {
			if m.committed[i] = true; len(m.committed) == m.sinks {
				m.phase, want = checkpoint.Idle, "Finished"
			}
		}
	default:
		if e = (checkpoint.Lost{Err: errScripted, Now: m.now}); rapid.IntRange(0, 3).Draw(t, "really") > 0 {
			e = checkpoint.Tick{Now: m.now}
		} else if m.phase == checkpoint.Cutting {
			m.phase, want = checkpoint.Idle, "Aborted"
			m.giveUp()
		}
	}
	var got strings.Builder
	for _, effect := range m.core.Step(e) {
		name, _, _ := strings.Cut(describe(effect), "{")
		got.WriteString(name)
		if s, ok := effect.(checkpoint.Store); ok && (len(s.Manifest.Readers) != m.readers || len(s.Manifest.Sinks) != m.sinks) {
			t.Fatalf("stored with %d readers and %d sinks", len(s.Manifest.Readers), len(s.Manifest.Sinks))
		}
	}
	if got.String() != want || m.core.Phase() != m.phase {
		t.Fatalf("%T%+v: %q in %s, want %q in %s", e, e, got.String(), m.core.Phase(), want, m.phase)
	}
}

func (m *coreModel) giveUp() {
	m.hold = m.now.Add(modelPauses[min(m.givenUp, len(modelPauses)-1)])
	m.givenUp++
}

// All readers have ended, and the coordinator still has a split for one of them: a checkpoint that called itself final would
// lose it.
func TestACheckpointWithSplitsOnTheirWayIsNotFinal(t *testing.T) {
	t.Parallel()
	for _, owing := range []bool{false, true} {
		c := checkpoint.NewCore(protocol.Manifest{Parallelism: 1}, 1, checkpoint.Limits{Timeout: time.Minute})
		now := time.Unix(1000, 0)
		c.Step(checkpoint.Trigger{ID: 1, Kind: protocol.Final, Now: now})
		c.Step(checkpoint.CoordinatorTaken{ID: 1, State: protocol.CoordinatorState{Owing: owing}, Now: now})
		c.Step(checkpoint.ReaderTaken{ID: 1, State: protocol.ReaderState{Ended: true}, Now: now})
		for _, e := range c.Step(checkpoint.SinkTaken{ID: 1, Now: now}) {
			if s, ok := e.(checkpoint.Store); !ok || (s.Manifest.Kind == protocol.Final) == owing {
				t.Errorf("owing %t: %+v", owing, e)
			}
		}
		if c.Phase() != checkpoint.Storing {
			t.Errorf("owing %t: the core is %s", owing, c.Phase())
		}
	}
}
