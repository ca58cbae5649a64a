package exchange

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/sdk"
)

// TestGateScripts: `new inputs=N` makes a gate, `do` runs a line per command:
//
//	send INPUT NUMBER...    batches
//	barrier INPUT CHECKPOINT
//	next | drain            take one, or everything that can be taken
//	abort CHECKPOINT
func TestGateScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/gate", func(t *testing.T, path string) {
		var g *Gate
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				var n int
				d.ScanArgs(t, "inputs", &n)
				g = gateOver(n, 4)
				return "ok\n"
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					gateLine(t, &out, g, strings.Fields(line))
				}
				return out.String()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func gateOver(n, credit int) *Gate {
	inputs := make([]*Channel, n)
	for i := range inputs {
		inputs[i] = NewChannel(credit, func() {}, func() {})
	}
	return NewGate(inputs)
}

func gateLine(t *testing.T, out io.Writer, g *Gate, f []string) {
	number := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch f[0] {
	case "send":
		for i := range f[2:] {
			g.inputs[number(1)].Send(batchOf(number(i + 2)))
		}
	case "barrier":
		g.inputs[number(1)].Barrier(barrier(sdk.CheckpointID(number(2))))
	case "next":
		fmt.Fprintf(out, "next: %s aligning=%d\n", took(g), g.Aligning())
	case "drain":
		var all []string
		for {
			s := took(g)
			if s == "-" {
				break
			}
			all = append(all, s)
		}
		fmt.Fprintf(out, "drain: %s aligning=%d\n", strings.Join(all, " "), g.Aligning())
	case "abort":
		g.Abort(sdk.CheckpointID(number(1)))
		fmt.Fprintf(out, "abort %s: aligning=%d\n", f[1], g.Aligning())
	default:
		t.Fatalf("unknown line %v", f)
	}
}

func took(g *Gate) string {
	it, from, ok := g.Next()
	switch {
	case !ok:
		return "-"
	case it.Batch == nil:
		return fmt.Sprintf("B%d", it.Barrier.Checkpoint)
	default:
		s := fmt.Sprint(offsets(it.Batch)[0])
		from.Put(it.Batch)
		return s
	}
}

// Whatever arrives in whatever order: all data before a barrier comes out before it, all behind it after, and a gate
// never keeps data back once its barrier is aligned or given up.
func TestGateNeverLetsDataPassABarrier(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "inputs")
		g := gateOver(n, 64)
		epoch := make([]int64, n) // the checkpoint that data of this input belongs to: after barrier c
		out := int64(0)           // the newest barrier that came out or was given up
		received, sent := 0, 0
		take := func() {
			for {
				it, from, ok := g.Next()
				if !ok {
					return
				}
				if it.Batch == nil {
					out = int64(it.Barrier.Checkpoint)
					continue
				}
				if tag := offsets(it.Batch)[0]; tag > out {
					t.Fatalf("data behind barrier %d came out before it, after %d", tag, out)
				}
				from.Put(it.Batch)
				received++
			}
		}
		for id := int64(1); id <= 4; id++ {
			abort := rapid.Bool().Draw(t, "abort")
			steps := rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 12).Draw(t, "steps")
			for _, i := range steps {
				switch {
				case epoch[i] < id && rapid.Bool().Draw(t, "barrier"):
					g.inputs[i].Barrier(barrier(sdk.CheckpointID(id)))
					epoch[i] = id
				default:
					g.inputs[i].Send(batchOf(epoch[i]))
					sent++
				}
				if rapid.Bool().Draw(t, "take") {
					take()
				}
			}
			if abort {
				g.Abort(sdk.CheckpointID(id))
				out = max(out, id)
			}
			for i := range epoch {
				if epoch[i] < id {
					g.inputs[i].Barrier(barrier(sdk.CheckpointID(id)))
					epoch[i] = id
				}
			}
			take()
			if g.Aligning() != 0 || received != sent || out != id {
				t.Fatalf("checkpoint %d: aligning %d, %d of %d batches came out, newest barrier %d", id, g.Aligning(), received, sent, out)
			}
		}
	})
}
