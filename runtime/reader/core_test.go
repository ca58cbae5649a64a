package reader

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

func encoded(id sdk.SplitID, pos int64) protocol.Split {
	return protocol.Split{ID: id, Data: sdk.VersionedBytes{Version: 1, Data: fmt.Appendf(nil, `{"ID":%q,"Pos":%d}`, id, pos)}}
}

// running returns a core that may poll.
func running(t *testing.T) *core {
	t.Helper()
	c := newCore([]protocol.Attempt{7}, "digest", nil, nil, 0)
	for _, e := range []lifecycle.Event{lifecycle.Restore, lifecycle.Started} {
		if _, err := c.main.Step(e); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Every combination of what the loop sees and where the attempt stands, against the sentence of the design: terminal, then
// controls, then at most one turn, and that only when one is due, allowed and has credit.
func TestNextEveryCombination(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 9 {
		on := func(i int) bool { return bits&(1<<i) != 0 }
		in := inputs{terminal: on(0), controls: on(1), notified: on(2), credit: on(3)}
		armed, ended, stopping, changing, draining := on(4), on(5), on(6), on(7), on(8)
		c := running(t)
		c.armed, c.ended = armed, ended
		if stopping {
			c.stopping = 4
		}
		if changing {
			if _, err := c.schema.Step(lifecycle.SchemaEvent{Kind: lifecycle.SchemaBegin, Request: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if draining {
			if _, err := c.main.Step(lifecycle.Drain); err != nil {
				t.Fatal(err)
			}
		}
		want := actPark
		switch {
		case in.terminal:
			want = actTerminal
		case in.controls:
			want = actControl
		case (armed || in.notified) && in.credit && !ended && !stopping && !changing && !draining:
			want = actPoll
		}
		if got := c.next(in); got != want {
			t.Errorf("%+v armed=%t ended=%t stopping=%t changing=%t draining=%t: %s, want %s", in, armed, ended, stopping, changing, draining, got, want)
		}
		blocked := (armed || in.notified) && !ended && !stopping && !changing && !draining
		if c.starved(in.credit) != (blocked && !in.credit) {
			t.Errorf("%+v armed=%t: starved is %t", in, armed, c.starved(in.credit))
		}
	}
}

func TestNoPollOutsideOfRunning(t *testing.T) {
	t.Parallel()
	c := newCore([]protocol.Attempt{7}, "", nil, nil, 0)
	for _, e := range []lifecycle.Event{lifecycle.Restore, lifecycle.Cancel, lifecycle.Finished} {
		if got := c.next(inputs{notified: true, credit: true}); got != actPark {
			t.Errorf("%s while %s", got, c.main.State())
		}
		if _, err := c.main.Step(e); err != nil {
			t.Fatal(err)
		}
	}
}

// Lost availability, brute force: whatever the order of rings, controls, turns and credit, a poll follows the last ring, and
// each control, and never is there one without a reason.
func TestAvailabilityIsNeverLost(t *testing.T) {
	t.Parallel()
	// n: the connector rings. c: a control is applied. p, P: a turn may run, and finds nothing or more. r: a turn may run, and the
	// connector rings while it runs and finds nothing. x: no credit for one step.
	const alphabet, depth = "ncpPrx", 6
	total := 1
	for range depth {
		total *= len(alphabet)
	}
	for n := range total {
		c, due, rung := running(t), true, false
		path := ""
		for rest := n; len(path) < depth; rest /= len(alphabet) {
			op := alphabet[rest%len(alphabet)]
			path += string(op)
			switch op {
			case 'n':
				rung, due = true, true
				continue
			case 'c':
				c.markApplied(&protocol.Envelope{Epoch: 1, Sequence: protocol.Sequence(len(path))})
				due = true
				continue
			}
			got, want := c.next(inputs{notified: rung, credit: op != 'x'}), actPark
			if rung = false; due && op != 'x' {
				want = actPoll
			}
			if got != want {
				t.Fatalf("after %s: %s, want %s", path, got, want)
			}
			if got != actPoll {
				continue
			}
			due = op != 'p'
			rung = op == 'r'
			c.armed = op == 'P'
		}
	}
}

// coreScript drives a core by hand.
type coreScript struct {
	c       *core
	attempt protocol.Attempt
}

// TestCoreScripts: `new [attempt=N] [restored=(a,b)] [generation=N]` makes a core, `do` runs a line per command:
//
//	assign EPOCH SEQ SPLIT...   judge an AddSplits, and apply it if so judged
//	command EPOCH SEQ           the same for a command without effect here
//	register EPOCH SEQ          the same for a registration, prints the answer
//	finish SPLIT                the split ended
//	barrier EPOCH SEQ N         judge, apply, and print the snapshot that checkpoint N would contain
//	complete N
func TestCoreScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/core", func(t *testing.T, path string) {
		s := &coreScript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				s.create(t, d)
				return "ok\n"
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					fmt.Fprintf(&out, "%s: ", strings.TrimSpace(line))
					s.line(t, &out, strings.Fields(line))
					fmt.Fprintln(&out)
				}
				return out.String()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func (s *coreScript) create(t *testing.T, d *datadriven.TestData) {
	attempt, generation := 7, 0
	d.MaybeScanArgs(t, "attempt", &attempt)
	d.MaybeScanArgs(t, "generation", &generation)
	var restored []protocol.Split
	if a, ok := d.Arg("restored"); ok {
		for _, id := range a.Vals {
			restored = append(restored, encoded(sdk.SplitID(id), 0))
		}
	}
	s.attempt = protocol.Attempt(attempt)
	s.c = newCore([]protocol.Attempt{s.attempt}, "digest", restored, nil, uint64(generation))
}

func (s *coreScript) line(t *testing.T, out io.Writer, f []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch f[0] {
	case "finish":
		s.c.finish(encoded(sdk.SplitID(f[1]), 99))
		fmt.Fprintf(out, "owned=%v finished=%v", ids(s.c.registration().Owned), ids(s.c.registration().Finished))
		return
	case "complete":
		s.c.completed(sdk.CheckpointID(number(1)))
		fmt.Fprintf(out, "owned=%v finished=%v", ids(s.c.registration().Owned), ids(s.c.registration().Finished))
		return
	}
	e := &protocol.Envelope{Epoch: protocol.Epoch(number(1)), Sequence: protocol.Sequence(number(2))}
	v := s.c.judge(e)
	if v == apply {
		v = s.c.markApplied(e)
	}
	fmt.Fprint(out, v)
	if v != apply {
		return
	}
	switch f[0] {
	case "assign":
		var splits []protocol.Split
		for _, id := range f[3:] {
			splits = append(splits, encoded(sdk.SplitID(id), 0))
		}
		fmt.Fprintf(out, " new=%v", splitIDs(s.c.adopt(splits)))
	case "register":
		r := s.c.registration()
		fmt.Fprintf(out, " watermark=%s owned=%v finished=%v", mark(r.Watermark), ids(r.Owned), ids(r.Finished))
	case "barrier":
		m := s.c.metadata()
		fmt.Fprintf(out, " watermark=%s owned=%v finished=%v", mark(m.Watermarks[0]), ids(s.c.registration().Owned), splitIDs(s.c.finished()))
		s.c.snapshotted(sdk.CheckpointID(number(3)))
	case "command":
	default:
		t.Fatalf("unknown line %v", f)
	}
}

// ids prints held splits; an asterisk says that a completed checkpoint contains the split.
func ids(held []Held) []string {
	out := []string{}
	for _, h := range held {
		s := string(h.Split.ID)
		if h.Durable {
			s += "*"
		}
		out = append(out, s)
	}
	return out
}

func splitIDs(splits []protocol.Split) []string {
	out := []string{}
	for _, s := range splits {
		out = append(out, string(s.ID))
	}
	return out
}

func mark(w protocol.Watermark) string {
	s := fmt.Sprintf("%d/%d", w.Epoch, w.Applied)
	if len(w.Gaps) > 0 {
		s += fmt.Sprintf("%v", w.Gaps)
	}
	return s
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	var lineage []protocol.Attempt
	for a := protocol.Attempt(1); a <= 20; a++ {
		lineage = append(lineage, a)
	}
	c := newCore(lineage, "digest", nil, nil, 5)
	m := c.metadata()
	if len(m.Lineage) != maxLineage || m.Lineage[0] != 5 || m.Lineage[maxLineage-1] != 20 {
		t.Errorf("lineage is %v", m.Lineage)
	}
	if m.MetadataVersion != protocol.MetadataVersion || m.CommandProtocolVersion != protocol.Version || m.ManagedLaneVersion != protocol.ManagedLaneVersion ||
		m.NoMoreSplitsGeneration != 5 || m.CapabilityDigest != "digest" || len(m.Watermarks) != 1 {
		t.Errorf("metadata is %+v", m)
	}
	m.Lineage[0] = 99
	if c.lineage[0] == 99 {
		t.Error("metadata shares the core's lineage")
	}
}

// A registration carries a split as it was assigned until a completed checkpoint contains it: only then nobody needs its
// position any more, and its bytes are dropped.
func TestRegistrationCarriesTheAssignedPosition(t *testing.T) {
	t.Parallel()
	c := newCore([]protocol.Attempt{7}, "", nil, nil, 0)
	c.adopt([]protocol.Split{encoded("a", 3)})
	if h := c.registration().Owned[0]; h.Durable || string(h.Split.Data.Data) != string(encoded("a", 3).Data.Data) {
		t.Errorf("before: %+v", h)
	}
	c.snapshotted(1)
	c.completed(1)
	if h := c.registration().Owned[0]; !h.Durable || h.Split.Data.Data != nil || h.Split.ID != "a" {
		t.Errorf("after: %+v", h)
	}
	c.finish(encoded("a", 10))
	if h := c.registration().Finished[0]; !h.Durable {
		t.Errorf("finished: %+v", h)
	}
	if got := c.finished()[0]; string(got.Data.Data) != string(encoded("a", 10).Data.Data) {
		t.Errorf("the evidence is %s", got.Data.Data)
	}
}

func TestFinishOfUnknownSplitIsIgnored(t *testing.T) {
	t.Parallel()
	c := newCore([]protocol.Attempt{7}, "", nil, nil, 0)
	c.finish(encoded("nobody", 1))
	if len(c.finished()) != 0 {
		t.Error("a split that was never held became evidence")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintln(actTerminal, actControl, actPoll, actPark, apply, discardStale, discardRepeat, discardOverrun); got !=
		"terminal control poll park apply discard-stale discard-repeat discard-overrun\n" {
		t.Error(got)
	}
}
