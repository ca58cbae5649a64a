package lineage

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/sdk"
)

// TestScripts runs the scripts of testdata. Each line of a scan is a shard: its id, then closed, parents=a,b.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := &script{t: t, top: New(Config{Parallelism: 2})}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	t   *testing.T
	top *Topology
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "new":
		s.top = New(s.config(d))
	case "restart":
		return s.restart(d)
	case "begin":
		fmt.Fprintln(&out, "scan", s.top.Begin())
	case "scan":
		return s.scan(d)
	case "batch":
		id, shards := s.top.Batch()
		fmt.Fprintln(&out, id, strings.Join(shards, " "))
	case "resolve":
		return s.resolve(d)
	case "cancel":
		s.top.Cancel()
	case "snapshot":
		s.top.Snapshotted(sdk.CheckpointID(number(d, 0)))
	case "durable":
		s.top.Durable(sdk.CheckpointID(number(d, 0)))
	case "open":
		s.top.Open()
	case "assign":
		if err := s.top.Assigned(d.CmdArgs[0].Key, sdk.ReaderID(number(d, 1))); err != nil {
			return "error: " + err.Error() + "\n"
		}
	case "returned":
		fmt.Fprintln(&out, s.top.Returned(d.CmdArgs[0].Key, parsePosition(t, d.CmdArgs[1].Key), HashRange{}))
	case "registered":
		if err := s.top.Registered(sdk.ReaderID(number(d, 0)), values(d, "held"), values(d, "ended")); err != nil {
			return "error: " + err.Error() + "\n"
		}
	case "ended":
		fmt.Fprintln(&out, s.top.Ended(d.CmdArgs[0].Key, values(d, "children")))
	case "finished":
		how := map[string]End{"stop": AtStop, "lost": AsLost}[strings.Join(values(d, "how"), "")]
		s.top.Finished(d.CmdArgs[0].Key, how, values(d, "children"))
	case "ready":
		for _, n := range s.top.Ready() {
			fmt.Fprintln(&out, n.ID, n.Position)
		}
	case "done":
		fmt.Fprintln(&out, s.top.Done())
	case "problem":
		fmt.Fprintln(&out, s.top.Problem())
	case "show":
		s.show(&out)
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

func (s *script) config(d *datadriven.TestData) Config {
	c := Config{Parallelism: 2, Misses: 1}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "continue":
			c.Continue = true
		case "misses":
			c.Misses, _ = strconv.Atoi(a.Vals[0])
		}
	}
	return c
}

// restart is what a process does that is started again.
func (s *script) restart(d *datadriven.TestData) string {
	top, err := Decode(s.top.Encode(), s.config(d))
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	s.top = top
	if len(top.Accepted()) > 0 {
		return "accepted as lost: " + strings.Join(top.Accepted(), " ") + "\n"
	}
	return "ok\n"
}

func (s *script) scan(d *datadriven.TestData) string {
	var scan Scan
	id := ScanID(0)
	start := Initial{Position: FromTrimHorizon()}
	skipClosed := false
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "id":
			n, _ := strconv.Atoi(a.Vals[0])
			id = ScanID(n)
		case "created":
			scan.Created, _ = strconv.ParseInt(a.Vals[0], 10, 64)
		case "latest":
			start = Initial{}
		case "skipclosed":
			skipClosed = true
		}
	}
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		shard := Shard{ID: f[0]}
		for _, word := range f[1:] {
			if parents, ok := strings.CutPrefix(word, "parents="); ok {
				shard.Parents = strings.Split(parents, ",")
			}
			shard.Closed = shard.Closed || word == "closed"
		}
		scan.Shards = append(scan.Shards, shard)
	}
	if id == 0 {
		id = s.top.Begin()
	}
	changes, err := s.top.Apply(id, scan, func(shard Shard) Initial {
		if skipClosed && shard.Closed {
			return Initial{Skip: true}
		}
		return start
	})
	switch {
	case err != nil:
		return "error: " + err.Error() + "\n"
	case changes.Stale:
		return "stale\n"
	}
	var out strings.Builder
	for _, l := range []struct {
		what   string
		shards []string
	}{{"found", changes.Found}, {"gone", changes.Gone}, {"lost", changes.Lost}} {
		if len(l.shards) > 0 {
			fmt.Fprintln(&out, l.what, strings.Join(l.shards, " "))
		}
	}
	if out.Len() == 0 {
		return "nothing new\n"
	}
	return out.String()
}

func (s *script) resolve(d *datadriven.TestData) string {
	id := BatchID(number(d, 0))
	positions := map[string]Position{}
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		positions[f[0]] = parsePosition(s.t, f[1])
	}
	applied, err := s.top.Resolve(id, positions)
	if err != nil && !errors.Is(err, ErrPositions) {
		s.t.Fatal(err)
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return fmt.Sprintln(applied)
}

func (s *script) show(out *strings.Builder) {
	for _, n := range s.top.Nodes() {
		fmt.Fprintf(out, "%s %s", n.ID, n.State)
		if len(n.Parents) > 0 {
			fmt.Fprintf(out, " parents=%s", strings.Join(n.Parents, ","))
		}
		for _, f := range []struct {
			word string
			is   bool
		}{{"closed", n.Closed}, {"lost", n.Lost}, {"skipped", n.Skipped}, {"outside", n.Outside}, {"gone", n.Gone}, {"held", n.Held}} {
			if f.is {
				out.WriteString(" " + f.word)
			}
		}
		if n.Position.Concrete() {
			fmt.Fprintf(out, " %s", n.Position)
		}
		out.WriteByte('\n')
	}
}

func number(d *datadriven.TestData, i int) int64 {
	n, err := strconv.ParseInt(d.CmdArgs[i].Key, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func values(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

// parsePosition reads trim, unresolved, time:N, at:N, after:N and after:N/part.
func parsePosition(t *testing.T, text string) Position {
	kind, value, _ := strings.Cut(text, ":")
	switch kind {
	case "trim":
		return FromTrimHorizon()
	case "unresolved":
		return Position{}
	case "time":
		ms, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return Position{Kind: AtTimestamp, Millis: ms, Sub: Whole}
	case "at":
		return At(value)
	case "after":
		sequence, part, parts := strings.Cut(value, "/")
		if !parts {
			return After(sequence)
		}
		sub, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return AfterPart(sequence, sub)
	}
	t.Fatalf("unknown position %q", text)
	return Position{}
}
