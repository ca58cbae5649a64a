package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Case is one thing that a source has to do right.
type Case struct {
	Name        string // group and case, as in state/snapshot_after_every_record
	Purpose     string // what goes wrong in production without it
	Requirement string // what the contract says
	Pass        string // when the case passes
	Cause       string // what is usually wrong when it does not
	Look        string // where the author looks first
}

// Group is the part of the name before the slash.
func (c Case) Group() string {
	group, _, _ := strings.Cut(c.Name, "/")
	return group
}

// Cases lists all cases in the order in which they run.
func Cases() []Case {
	return slices.Concat(readerCatalog, endCatalog, stateCatalog, checkpointCatalog, closeCatalog, codecCatalog, enumeratorCatalog,
		engineCatalog, metricsCatalog)
}

func caseNamed(name string) (Case, bool) {
	for _, c := range Cases() {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

// Result is what came of one case.
type Result struct {
	Case
	// Skipped says why the case did not run; empty when it did.
	Skipped string
	// Failures is what was seen; empty when the case passed.
	Failures []string
	// Before says that the case did not come to what it is about: a call failed that every case begins with.
	Before bool
}

// Failed reports whether the source failed the case.
func (r Result) Failed() bool { return len(r.Failures) > 0 }

// String is what a person reads about a case that failed.
func (r Result) String() string {
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s\n", f)
	}
	if r.Before {
		b.WriteString("It is not what this case is about, and every case that comes to it fails in the same way: mend it first.")
		return b.String()
	}
	fmt.Fprintf(&b, "Contract: %s\nPasses when: %s\nUsual cause: %s Look at %s.", r.Requirement, r.Pass, r.Cause, r.Look)
	return b.String()
}
