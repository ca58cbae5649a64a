package coordinator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// TestLoopScripts drives a coordinator with readers that the script plays. `new readers=N` prepares an epoch, with the names that follow
// as unassigned splits, and `do` runs a line per command:
//
//	up READER               a first attempt, made known to the coordinator
//	serve                   readers apply what they have admitted, until nothing is left to do
//	wait                    a second passes
//	assign READER SPLIT...  by the enumerator
//	no-more READER          by the enumerator
//	refuse READER KIND      the reader's mailbox has no room for commands of that kind; admit READER ends that
//	finish READER SPLIT     the reader has read a split to its end
//	cut ID | abort ID       a checkpoint begins, is given up
//	checkpoint ID           one that completes, with every reader
//	die READER              the reader is gone; back READER [ID] is its next attempt, from nothing or from its part of a checkpoint
//	failover [ID]           another coordinator, from nothing or from a checkpoint
//	holds READER            what the reader holds
//
// After each line stands what the enumerator and the job were told, and what readers were offered.
func TestLoopScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/loop", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &loopScript{t: t}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "new":
					s.end()
					var readers int
					d.ScanArgs(t, "readers", &readers)
					s.rig, s.cuts = newRig(s.t, readers, nil), map[sdk.CheckpointID]*Restored{}
					s.script.unassigned = strings.Fields(d.Input)
					s.start()
					return s.seen()
				case "do":
					var out strings.Builder
					for line := range strings.Lines(d.Input) {
						s.line(strings.Fields(line))
						fmt.Fprintf(&out, "%s\n%s", strings.TrimSpace(line), s.seen())
					}
					return out.String()
				default:
					t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
					return ""
				}
			})
			s.end()
		})
	})
}

type loopScript struct {
	t *testing.T
	*rig
	cuts map[sdk.CheckpointID]*Restored
}

func (s *loopScript) end() {
	if s.rig != nil {
		s.loop.Fence()
		<-s.loop.Done()
	}
}

func (s *loopScript) line(f []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	var rd *fakeReader
	if len(f) > 1 && number(1) < len(s.readers) {
		rd = s.readers[number(1)]
	}
	switch f[0] {
	case "up":
		rd.begin(nil)
		s.loop.ReaderUp(rd.id, rd.attempt, rd, &telemetry.Reader{})
	case "serve":
		s.serve()
	case "wait":
		<-time.After(time.Second)
	case "assign":
		s.assign(rd.id, f[2:]...)
		s.do(func() {
			s.script.unassigned = slices.DeleteFunc(s.script.unassigned, func(id string) bool { return slices.Contains(f[2:], id) })
		})
	case "no-more":
		s.do(func() {
			if err := s.script.ctx.NoMoreSplits(rd.id); err != nil {
				s.t.Error(err)
			}
		})
	case "refuse":
		for kind := protocol.AddSplits; kind.Known(); kind++ {
			if kind.String() == f[2] {
				rd.refuse(kind)
			}
		}
	case "admit":
		rd.script(nil)
	case "finish":
		rd.finish(sdk.SplitID(f[2]))
	case "cut":
		s.loop.Cut(sdk.CheckpointID(number(1)), protocol.Periodic)
	case "abort":
		s.loop.Abort(sdk.CheckpointID(number(1)))
	case "checkpoint":
		id := sdk.CheckpointID(number(1))
		s.cuts[id] = s.checkpoint(id)
	case "die":
		s.loop.ReaderDown(rd.id, rd.attempt)
	case "back":
		var part *protocol.ReaderState
		if len(f) > 2 {
			part = &s.cuts[sdk.CheckpointID(number(2))].Readers[rd.id]
		}
		rd.begin(part)
		s.loop.ReaderUp(rd.id, rd.attempt, rd, &telemetry.Reader{})
	case "failover":
		var from *Restored
		if len(f) > 1 {
			from = s.cuts[sdk.CheckpointID(number(1))]
		}
		s.failover(from)
	case "holds":
		s.note("%s", rd.holds())
	default:
		s.t.Fatalf("unknown command %q", f[0])
	}
}

// seen is what has happened since it was asked last.
func (s *loopScript) seen() string {
	var out strings.Builder
	if log := s.log(); log != "" {
		fmt.Fprintf(&out, "  %s\n", log)
	}
	s.forget()
	for _, rd := range s.readers {
		if commands := rd.offered(); commands != "" {
			words := strings.Fields(commands)
			fmt.Fprintf(&out, "  to reader %d: %s\n", rd.id, strings.Join(slices.Compact(words), " ")) // offered again is offered
		}
	}
	return out.String()
}
