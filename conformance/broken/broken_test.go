package broken_test

import (
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/broken"
	"github.com/penstock-dev/penstock/sdk"
)

func harness(defect broken.Defect) conformance.Harness[broken.Split, *broken.System] {
	return conformance.Harness[broken.Split, *broken.System]{
		Backend: broken.NewSystem,
		Source:  func(s *broken.System) sdk.Source[broken.Split] { return broken.New(s, defect) },
		Bounded: func(s *broken.System) sdk.Source[broken.Split] { return broken.NewBounded(s, defect) },
	}
}

func TestTheSoundSourcePasses(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(broken.Sound))
}

// further are the cases that fail with a defect besides the one that it is named after: one mistake may break several promises.
var further = map[broken.Defect][]string{}

// everywhere are defects with which nearly everything fails.
var everywhere = []broken.Defect{broken.EmitsAtLarge, broken.DiscoversAtLarge}

// alone are the groups of cases that try a part by itself.
var alone = []string{"reader/", "end/", "state/", "checkpoint/", "close/", "codec/", "enumerator/", "metrics/"}

// Each case has a source that fails it, and the others do not fail by the way. Where the engine is not needed to see a defect, it is left out.
func TestEachCaseFindsItsDefect(t *testing.T) {
	t.Parallel()
	for _, c := range conformance.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var groups []string
			if c.Group() != "engine" {
				groups = alone
			}
			results, err := conformance.Examine(t, harness(broken.Defect(c.Name)), groups...)
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, r := range results {
				if r.Failed() {
					failed = append(failed, r.Name)
				}
			}
			if slices.Contains(everywhere, broken.Defect(c.Name)) && slices.Contains(failed, c.Name) {
				return
			}
			want := append([]string{c.Name}, further[broken.Defect(c.Name)]...)
			slices.Sort(want)
			if slices.Sort(failed); !slices.Equal(failed, want) {
				t.Errorf("%q: {%q},", c.Name, slices.DeleteFunc(failed, func(n string) bool { return n == c.Name }))
			}
		})
	}
}
