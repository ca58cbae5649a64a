package catalog

import (
	"io"
	"testing"

	"github.com/penstock-dev/penstock/conformance"
)

// Nothing is released that has not passed the suite as it is: when the suite's version grows, each source passes it again and records
// that. See docs/en/connector-policy.md.
func TestEveryShippedSourceRecordsAPassOfThisSuite(t *testing.T) {
	t.Parallel()
	for _, s := range Shipped(io.Discard).Sources {
		_, build := s.New()
		built, err := build()
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if c := built.Source.Capability(); c.Suite != conformance.Version || c.Connector != s.Name {
			t.Errorf("%s is connector %q with a pass of suite %d, this is suite %d", s.Name, c.Connector, c.Suite, conformance.Version)
		}
	}
}
