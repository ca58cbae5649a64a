package base

import "testing"

// Splits that come and go for ever must not make the state grow for ever, and one that finished is forgotten only when no
// gap in the metadata can explain that it is missing.
func TestFinishedSplitsAreForgottenInTheEnd(t *testing.T) {
	t.Parallel()
	l := newLedger[at](1)
	discover := func(splits ...at) {
		t.Helper()
		if _, _, err := l.discovered(splits, false); err != nil {
			t.Fatal(err)
		}
	}
	discover(at{"a", 0}, at{"b", 0})
	l.ended([]at{{"a", 9}})
	for range forgetAfter - 1 {
		discover(at{"b", 0})
	}
	discover(at{"a", 0}, at{"b", 0}) // it was a gap after all
	for range forgetAfter - 1 {
		discover(at{"b", 0})
	}
	if known := l.round().Known; !known("a") || !known("b") || known("c") {
		t.Error("known before the last discovery: want a and b")
	}
	before := l.round()
	discover(at{"b", 0})
	if known := l.round().Known; known("a") || !known("b") {
		t.Error("known after it: want b only")
	}
	if !before.Known("a") {
		t.Error("a round that was handed out has changed")
	}
	for range 2 * forgetAfter {
		discover()
	}
	if !l.round().Known("b") {
		t.Error("a split that did not finish was forgotten")
	}
}

func TestADiscoveryWithASplitTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLedger[at](1)
	for _, bad := range [][]at{{{"a", 0}, {"b", 0}, {"a", 1}}, {{"a", 0}, {"", 0}}} {
		if _, _, err := l.discovered(bad, false); err == nil || l.firstDone || len(l.entries) != 0 {
			t.Errorf("%v: error %v, first done %t, %d splits; want an error and nothing recorded", bad, err, l.firstDone, len(l.entries))
		}
	}
}
