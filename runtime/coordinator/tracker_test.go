package coordinator

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// encodedSplit has an id and ten bytes of data.
func encodedSplit(id sdk.SplitID) protocol.Split {
	return protocol.Split{ID: id, Data: sdk.VersionedBytes{Version: 1, Data: fmt.Appendf(nil, "%-10.10s", id)}}
}

func encodedSplits(ids ...string) []protocol.Split {
	out := make([]protocol.Split, len(ids))
	for i, id := range ids {
		out[i] = encodedSplit(sdk.SplitID(id))
	}
	return out
}

func namesOf(splits []protocol.Split) string {
	out := make([]string, len(splits))
	for i, s := range splits {
		out[i] = string(s.ID)
	}
	return strings.Join(out, " ")
}

// TestTrackerScripts: `new [splits=N] [bytes=N]` makes a tracker, `do` runs a line per command. Attempts of reader R are 10R+1,
// and each `reset` begins the next one; the epoch is 1.
//
//	dispatch R SEQ SPLIT...    if there is room
//	admit R SEQ
//	applied R HIGH [GAP...]    a watermark of the present attempt
//	include N R HIGH [GAP...]  the part of checkpoint N of the present attempt
//	abort N | complete N
//	reset R [HELD...]          a new attempt, which holds these
//	adopt R SPLIT...
//	snapshot
func TestTrackerScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/tracker", func(t *testing.T, path string) {
		s := &trackerScript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				splits, bytes := 100, int64(10_000)
				d.MaybeScanArgs(t, "splits", &splits)
				d.MaybeScanArgs(t, "bytes", &bytes)
				s.tracker, s.attempts = NewTracker(splits, bytes), map[int]protocol.Attempt{}
				return "ok\n"
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					fmt.Fprintf(&out, "%s:", strings.TrimSpace(line))
					s.line(t, &out, strings.Fields(line))
					fmt.Fprintf(&out, " | %s\n", s.states())
				}
				return out.String()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

type trackerScript struct {
	tracker  *Tracker
	attempts map[int]protocol.Attempt
}

func (s *trackerScript) attempt(reader int) protocol.Attempt {
	if s.attempts[reader] == 0 {
		s.attempts[reader] = protocol.Attempt(10*reader + 1)
	}
	return s.attempts[reader]
}

func (s *trackerScript) line(t *testing.T, out io.Writer, f []string) {
	n := make([]int, len(f))
	for i, word := range f[1:] {
		n[i+1], _ = strconv.Atoi(word) // words that are no numbers are split ids
	}
	watermark := func(from int) protocol.Watermark {
		w := protocol.Watermark{Epoch: 1, Applied: protocol.Sequence(n[from])}
		for _, gap := range n[from+1:] {
			w.Gaps = append(w.Gaps, protocol.Sequence(gap))
		}
		return w
	}
	now := time.Unix(1000, 0)
	switch f[0] {
	case "dispatch":
		splits := encodedSplits(f[3:]...)
		if !s.tracker.Room(splits) {
			fmt.Fprint(out, " no room")
			return
		}
		s.tracker.Dispatch(protocol.Assignment{
			Reader: sdk.ReaderID(n[1]), Target: s.attempt(n[1]), Epoch: 1, Sequence: protocol.Sequence(n[2]), Splits: splits,
		}, now)
	case "admit":
		s.tracker.Admitted(sdk.ReaderID(n[1]), protocol.Sequence(n[2]))
	case "applied":
		s.tracker.Applied(sdk.ReaderID(n[1]), s.attempt(n[1]), watermark(2))
	case "include":
		s.tracker.Included(sdk.CheckpointID(n[1]), sdk.ReaderID(n[2]), s.attempt(n[2]), []protocol.Watermark{watermark(3)})
	case "abort":
		s.tracker.Aborted(sdk.CheckpointID(n[1]))
	case "complete":
		fmt.Fprintf(out, " dropped %d", s.tracker.Complete(sdk.CheckpointID(n[1])))
	case "reset":
		s.attempts[n[1]] = s.attempt(n[1]) + 1
		back := s.tracker.Reset(sdk.ReaderID(n[1]), func(id sdk.SplitID) bool { return slices.Contains(f[2:], string(id)) })
		fmt.Fprintf(out, " returned [%s]", namesOf(back))
	case "adopt":
		s.tracker.Adopt(sdk.ReaderID(n[1]), s.attempt(n[1]), 1, encodedSplits(f[2:]...), now)
	case "snapshot":
		for _, a := range s.tracker.Snapshot() {
			fmt.Fprintf(out, " %d@%d#%d[%s]", a.Reader, a.Target, a.Sequence, namesOf(a.Splits))
		}
	default:
		t.Fatalf("unknown line %v", f)
	}
}

// states prints how many splits are in each state, from the metrics.
func (s *trackerScript) states() string {
	var stats telemetry.Coordinator
	s.tracker.measure(&stats)
	var parts []string
	for state := range stats.Assignments {
		if n := stats.Assignments[state].Value(); n != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", telemetry.AssignmentState(state), n))
		}
	}
	if len(parts) == 0 {
		parts = []string{"empty"}
	}
	return fmt.Sprintf("%s (%d splits, %d bytes)", strings.Join(parts, " "), stats.TrackerEntries.Value(), stats.TrackerBytes.Value())
}

// An older coordinator's or attempt's watermark proves nothing about the present one's assignments.
func TestForeignWatermarksCoverNothing(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]struct {
		target protocol.Attempt
		epoch  protocol.Epoch
	}{"older epoch": {7, 1}, "newer epoch": {7, 3}, "older attempt": {6, 2}, "newer attempt": {8, 2}} {
		tr := NewTracker(10, 1000)
		tr.Dispatch(protocol.Assignment{Reader: 0, Target: 7, Epoch: 2, Sequence: 1, Splits: encodedSplits("a")}, time.Unix(1, 0))
		mark := protocol.Watermark{Epoch: w.epoch, Applied: 5}
		tr.Applied(0, w.target, mark)
		tr.Included(1, 0, w.target, []protocol.Watermark{mark})
		if n := tr.Complete(1); n != 0 || tr.states[telemetry.Dispatched] != 1 {
			t.Errorf("%s: dropped %d, states %v", name, n, tr.states)
		}
	}
}

// plainEntry and plainTracker are the reference: one flat list, no indexes, no counts.
type plainEntry struct {
	reader   sdk.ReaderID
	target   protocol.Attempt
	seq      protocol.Sequence
	splits   []string
	state    telemetry.AssignmentState
	included sdk.CheckpointID
}

type plainTracker struct{ entries []plainEntry }

func (p *plainTracker) covered(e *plainEntry, target protocol.Attempt, seen map[protocol.Sequence]bool) bool {
	return e.target == target && (e.seq == 0 || seen[e.seq])
}

// each calls f for the entries of a reader.
func (p *plainTracker) each(reader sdk.ReaderID, f func(e *plainEntry)) {
	for i := range p.entries {
		if p.entries[i].reader == reader {
			f(&p.entries[i])
		}
	}
}

func (p *plainTracker) splits() int {
	n := 0
	for _, e := range p.entries {
		n += len(e.splits)
	}
	return n
}

// reader is the other side in the model: what an attempt has applied.
type modelReader struct {
	attempt protocol.Attempt
	next    protocol.Sequence
	seen    map[protocol.Sequence]bool
	high    protocol.Sequence
}

func (r *modelReader) mark() protocol.Watermark {
	w := protocol.Watermark{Epoch: 1, Applied: r.high}
	for s := protocol.Sequence(1); s <= r.high; s++ {
		if !r.seen[s] {
			w.Gaps = append(w.Gaps, s)
		}
	}
	return w
}

// TestTrackerModel walks at random and compares with the reference after every step: states, bounds, snapshot, and what comes
// back from a reset.
func TestTrackerModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &trackerModel{tracker: NewTracker(12, 1<<20), readers: map[sdk.ReaderID]*modelReader{}, checkpoint: 1}
		for id := range sdk.ReaderID(3) {
			m.readers[id] = &modelReader{attempt: protocol.Attempt(10*id + 1), seen: map[protocol.Sequence]bool{}}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.step(t)
			m.check(t)
		}
	})
}

type trackerModel struct {
	tracker    *Tracker
	plain      plainTracker
	readers    map[sdk.ReaderID]*modelReader
	splits     int
	checkpoint sdk.CheckpointID
}

func (m *trackerModel) step(t *rapid.T) {
	id := sdk.ReaderID(rapid.IntRange(0, 2).Draw(t, "reader"))
	r := m.readers[id]
	switch rapid.IntRange(0, 9).Draw(t, "op") {
	case 0, 1, 2:
		m.dispatch(t, id, r)
	case 3:
		seq := protocol.Sequence(rapid.IntRange(0, int(r.next)+1).Draw(t, "seq"))
		m.tracker.Admitted(id, seq)
		m.plain.each(id, func(e *plainEntry) {
			if e.seq == seq && e.target == r.attempt && e.state == telemetry.Dispatched {
				e.state = telemetry.Admitted
			}
		})
	case 4, 5:
		for s := protocol.Sequence(1); s <= r.next; s++ {
			if rapid.Bool().Draw(t, "applied") {
				r.seen[s] = true
				r.high = max(r.high, s)
			}
		}
		m.tracker.Applied(id, r.attempt, r.mark())
		m.plain.each(id, func(e *plainEntry) {
			if e.state < telemetry.Applied && m.plain.covered(e, r.attempt, r.seen) {
				e.state = telemetry.Applied
			}
		})
	case 6:
		m.tracker.Included(m.checkpoint, id, r.attempt, []protocol.Watermark{r.mark()})
		m.plain.each(id, func(e *plainEntry) {
			if e.state != telemetry.CheckpointIncluded && m.plain.covered(e, r.attempt, r.seen) {
				e.state, e.included = telemetry.CheckpointIncluded, m.checkpoint
			}
		})
	case 7:
		m.tracker.Aborted(m.checkpoint)
		for i := range m.plain.entries {
			if e := &m.plain.entries[i]; e.state == telemetry.CheckpointIncluded && e.included == m.checkpoint {
				e.state, e.included = telemetry.Applied, 0
			}
		}
		m.checkpoint++
	case 8:
		m.tracker.Complete(m.checkpoint)
		m.plain.entries = slices.DeleteFunc(m.plain.entries, func(e plainEntry) bool {
			return e.state == telemetry.CheckpointIncluded && e.included <= m.checkpoint
		})
		m.checkpoint++
	case 9:
		m.reset(t, id, r)
	}
}

func (m *trackerModel) dispatch(t *rapid.T, id sdk.ReaderID, r *modelReader) {
	var names []string
	for range rapid.IntRange(1, 3).Draw(t, "splits") {
		m.splits++
		names = append(names, fmt.Sprintf("s%d", m.splits))
	}
	room := m.plain.splits()+len(names) <= 12
	if got := m.tracker.Room(encodedSplits(names...)); got != room {
		t.Fatalf("Room for %d is %t with %d of 12", len(names), got, m.plain.splits())
	}
	if !room {
		return
	}
	r.next += protocol.Sequence(rapid.IntRange(1, 3).Draw(t, "skipped")) // other commands have sequences too
	m.tracker.Dispatch(protocol.Assignment{Reader: id, Target: r.attempt, Epoch: 1, Sequence: r.next, Splits: encodedSplits(names...)}, time.Unix(1, 0))
	m.plain.entries = append(m.plain.entries, plainEntry{reader: id, target: r.attempt, seq: r.next, splits: names, state: telemetry.Dispatched})
}

// reset gives the reader a new attempt that holds some of its splits, and adopts some of these.
func (m *trackerModel) reset(t *rapid.T, id sdk.ReaderID, r *modelReader) {
	*r = modelReader{attempt: r.attempt + 1, seen: map[protocol.Sequence]bool{}}
	held := map[string]bool{}
	var back, adopted []string
	m.plain.each(id, func(e *plainEntry) {
		for _, s := range e.splits {
			switch rapid.IntRange(0, 2).Draw(t, "fate") {
			case 0:
				back = append(back, s)
			case 1:
				held[s] = true
				adopted = append(adopted, s)
			default:
				held[s] = true
			}
		}
	})
	m.plain.entries = slices.DeleteFunc(m.plain.entries, func(e plainEntry) bool { return e.reader == id })
	got := m.tracker.Reset(id, func(s sdk.SplitID) bool { return held[string(s)] })
	if namesOf(got) != strings.Join(back, " ") {
		t.Fatalf("reset returned [%s], want %v", namesOf(got), back)
	}
	m.tracker.Adopt(id, r.attempt, 1, encodedSplits(adopted...), time.Unix(1, 0))
	if len(adopted) > 0 {
		m.plain.entries = append(m.plain.entries, plainEntry{reader: id, target: r.attempt, splits: adopted, state: telemetry.Applied})
	}
}

func (m *trackerModel) check(t *rapid.T) {
	var states [telemetry.GCEligible + 1]int
	want := map[string]bool{}
	for _, e := range m.plain.entries {
		states[e.state] += len(e.splits)
		want[fmt.Sprintf("%d@%d#%d%v", e.reader, e.target, e.seq, e.splits)] = true
	}
	if m.tracker.states != states || m.tracker.splits != m.plain.splits() {
		t.Fatalf("states %v with %d splits, want %v with %d", m.tracker.states, m.tracker.splits, states, m.plain.splits())
	}
	got, bytes := map[string]bool{}, int64(0)
	for _, a := range m.tracker.Snapshot() {
		got[fmt.Sprintf("%d@%d#%d[%s]", a.Reader, a.Target, a.Sequence, namesOf(a.Splits))] = true
		bytes += size(a.Splits)
	}
	if !maps.Equal(got, want) || m.tracker.bytes != bytes {
		t.Fatalf("snapshot %v with %d bytes, want %v with %d", got, m.tracker.bytes, want, bytes)
	}
}

// Noting a watermark costs what changed, not what the tracker holds: reports come after every command.
func BenchmarkApplied(b *testing.B) {
	tr := NewTracker(200_000, 1<<30)
	for seq := range protocol.Sequence(100_000) {
		tr.Dispatch(protocol.Assignment{Reader: 0, Target: 7, Epoch: 1, Sequence: seq + 1, Splits: encodedSplits("a")}, time.Unix(1, 0))
	}
	tr.Applied(0, 7, protocol.Watermark{Epoch: 1, Applied: 99_999})
	b.ReportAllocs()
	for b.Loop() {
		tr.Applied(0, 7, protocol.Watermark{Epoch: 1, Applied: 99_999})
	}
}
