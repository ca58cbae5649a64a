package model_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/conformance/model"
	"github.com/penstock-dev/penstock/sdk"
)

func splits(n int) (out []sdk.SplitID) {
	for i := range n {
		out = append(out, sdk.SplitID(fmt.Sprint("s", i)))
	}
	return out
}

// Whatever happens in whatever order, every split is where the reference says.
func TestCoordinatorAndReadersAgreeWithTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { rapid.SyncTest(t, walk) })
}

func walk(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "parallelism")
	checkpoints := rapid.SampledFrom([]string{"on", "on", "on", "off", "failing"}).Draw(t, "checkpoints")
	w := model.NewWorld(splits(rapid.IntRange(1, 8).Draw(t, "splits")), n, rapid.IntRange(1, 8).Draw(t, "tracker"), checkpoints != "off")
	defer func() { w.Stop() }()
	who := func(t *rapid.T) sdk.ReaderID {
		return sdk.ReaderID(rapid.IntRange(0, w.Parallelism()-1).Draw(t, "reader"))
	}
	actions := map[string]func(*rapid.T){
		"assign":         func(t *rapid.T) { w.Assign(who(t), rapid.IntRange(1, 3).Draw(t, "splits")) },
		"assign more":    func(t *rapid.T) { w.Assign(who(t), rapid.IntRange(1, 3).Draw(t, "splits")) },
		"end":            func(t *rapid.T) { w.End(who(t), rapid.IntRange(0, 7).Draw(t, "split")) },
		"no more splits": func(t *rapid.T) { w.NoMoreSplits(who(t)) },
		"hold":           func(t *rapid.T) { w.Hold(who(t), rapid.Bool().Draw(t, "hold")) },
		"delivery": func(t *rapid.T) {
			w.Deliver(who(t), model.Delivery(rapid.IntRange(0, 3).Draw(t, "delivery")))
		},
		"time passes":            func(*rapid.T) { w.Pass() },
		"reader dies":            func(t *rapid.T) { w.FailReader(who(t)) },
		"coordinator dies":       func(*rapid.T) { w.FailCoordinator() },
		"everything dies":        func(t *rapid.T) { w.FailAll(rapid.IntRange(1, 4).Draw(t, "parallelism")) },
		"":                       func(t *rapid.T) { tell(t, w.Problems()) },
		"assign in the cut":      func(t *rapid.T) { w.AssignInTheCut(who(t), rapid.IntRange(1, 3).Draw(t, "splits")) },
		"checkpoint is given up": func(*rapid.T) { w.Abort() },
	}
	if checkpoints != "off" {
		actions["checkpoint"] = func(*rapid.T) { w.Cut() }
		actions["checkpoint completes"] = func(t *rapid.T) {
			switch {
			case checkpoints == "failing":
				w.Abort()
			case !w.Complete():
			case rapid.IntRange(0, 3).Draw(t, "told") == 0:
				w.FailCoordinator() // before it heard of it
			default:
				w.Announce()
			}
		}
	}
	t.Repeat(actions)
	tell(t, w.Settle())
}

func tell(t interface{ Fatalf(string, ...any) }, problems []string) {
	if len(problems) > 0 {
		t.Fatalf("%s", strings.Join(problems, "\n"))
	}
}
