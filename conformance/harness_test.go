package conformance

import (
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

func TestAHarnessSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	h := Harness[anySplit, Backend]{Exempt: map[string]string{"reader/unheard_of": "because", "reader/byte_budget": "because"}}
	_, err := Examine(t, h)
	if err == nil {
		t.Fatal("an empty harness was taken")
	}
	for _, want := range []string{"Harness.Backend", "Harness.Source", `"reader/unheard_of"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "byte_budget") {
		t.Errorf("the error complains of a case that exists: %v", err)
	}
}

// noSystem can do nothing.
type noSystem struct{}

func (noSystem) Append(int, ...string) {}
func (noSystem) Stall()                {}
func (noSystem) Resume()               {}
func (noSystem) Close()                {}

func TestWhatIsMissingIsSkippedAndSaid(t *testing.T) {
	t.Parallel()
	h := Harness[anySplit, noSystem]{
		Backend: func(int) noSystem { return noSystem{} },
		Source:  func(noSystem) sdk.Source[anySplit] { panic("it is not asked for") },
		Exempt:  map[string]string{"reader/byte_budget": "its records are small"},
		Parts:   3,
	}
	for name, want := range map[string]string{
		"end/without_splits":   "Harness.Bounded",
		"reader/byte_budget":   "exempt: its records are small",
		"engine/system_fails":  "conformance.Failer",
		"enumerator/new_parts": "Harness.Parts",
		"metrics/are_bounded":  "Harness.Parts",
	} {
		results, err := Examine(t, h, name)
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %d results, %v", name, len(results), err)
		}
		if r := results[0]; !strings.Contains(r.Skipped, want) || r.Failed() {
			t.Errorf("%s: skipped because %q, failures %q, want %q", name, r.Skipped, r.Failures, want)
		}
	}
}

func TestAPanicOfASourceFailsItsCase(t *testing.T) {
	t.Parallel()
	h := Harness[anySplit, noSystem]{
		Backend: func(int) noSystem { return noSystem{} },
		Source:  func(noSystem) sdk.Source[anySplit] { panic("no source today") },
	}
	results, err := Examine(t, h, "reader/byte_budget")
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Before {
		t.Error("a panic is taken for something else")
	}
	for _, want := range []string{"no source today", "Contract: ", "Passes when: ", "Usual cause: ", "Look at "} {
		if !strings.Contains(results[0].String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, results[0])
		}
	}
}

// What every case begins with is not explained by what usually fails one of them.
func TestAReaderThatCannotBeMadeIsNoMatterOfItsCase(t *testing.T) {
	t.Parallel()
	r := Result{Case: Cases()[0], Failures: []string{"NewReader: Fetcher is not set"}, Before: true}
	if got := r.String(); !strings.Contains(got, "Fetcher is not set") || strings.Contains(got, "Usual cause") {
		t.Errorf("got %q", got)
	}
}
