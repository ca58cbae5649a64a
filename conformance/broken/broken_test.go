package broken_test

import (
	"os"
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
	conformance.Run(t, harness(broken.Sound))
}

func TestEachDefectIsFound(t *testing.T) {
	for _, c := range conformance.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			var prefixes []string
			if os.Getenv("ALL") == "" {
				prefixes = []string{c.Name}
			}
			results, err := conformance.Examine(t, harness(broken.Defect(c.Name)), prefixes...)
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, r := range results {
				if r.Failed() {
					failed = append(failed, r.Name)
				}
			}
			t.Log(failed)
			if !slices.Contains(failed, c.Name) {
				t.Errorf("not found")
			}
		})
	}
}
