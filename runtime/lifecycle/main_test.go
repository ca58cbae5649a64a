package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// legal states the main machine a second time, in words: one line per state, its events and where they lead. What is not
// here is illegal.
const legal = `
created:    restore>restoring cancel>cancelling fail>failed
restoring:  started>running drain>draining cancel>cancelling fail>failed
running:    drain>draining cancel>cancelling fail>failed
draining:   drain>draining cancel>cancelling fail>failed finished>closed
cancelling: started>cancelling drain>cancelling cancel>cancelling fail>cancelling finished>closed
failed:     started>failed drain>failed cancel>failed fail>failed finished>closed
closed:     cancel>closed fail>closed
`

func parseLegal(t *testing.T) map[string]string {
	t.Helper()
	next := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(legal)) {
		state, rest, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("line %q has no state", line)
		}
		for rule := range strings.FieldsSeq(rest) {
			event, to, _ := strings.Cut(rule, ">")
			next[state+" "+event] = to
		}
	}
	return next
}

// Every pair of state and event, from the enumerations: a new state or event that nobody thought through fails here.
func TestMainMachineEveryTransition(t *testing.T) {
	t.Parallel()
	want, seen := parseLegal(t), 0
	for s := range numStates {
		for e := range numEvents {
			t.Run(fmt.Sprintf("%s/%s", s, e), func(t *testing.T) {
				m := Machine{state: s}
				got, err := m.Step(e)
				to, ok := want[s.String()+" "+e.String()]
				switch {
				case ok && (err != nil || got.String() != to || m.State() != got):
					t.Errorf("got %s, %v; want %s", got, err, to)
				case !ok && (!errors.Is(err, ErrIllegal) || got != s || m.State() != s):
					t.Errorf("got %s, %v; want no change and ErrIllegal", got, err)
				}
			})
			if _, ok := want[s.String()+" "+e.String()]; ok {
				seen++
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of the %d legal transitions exist in the enumerations", seen, len(want))
	}
}

func TestMainMachineUnknownValues(t *testing.T) {
	t.Parallel()
	var m Machine
	if _, err := m.Step(numEvents); !errors.Is(err, ErrIllegal) {
		t.Errorf("unknown event: %v", err)
	}
	if got := State(200).String(); got != "State(200)" {
		t.Errorf("unknown state prints as %s", got)
	}
	if got := Event(200).String(); got != "Event(200)" {
		t.Errorf("unknown event prints as %s", got)
	}
}

// Whatever happens, a machine reaches Closed within two steps, and never leaves it.
func TestMainMachineAlwaysCloses(t *testing.T) {
	t.Parallel()
	for s := range numStates {
		m := Machine{state: s}
		if s != Closed {
			if _, err := m.Step(Fail); err != nil {
				t.Errorf("fail while %s: %v", s, err)
			}
			if _, err := m.Step(Finished); err != nil {
				t.Errorf("finished after fail while %s: %v", s, err)
			}
		}
		for e := range numEvents {
			if got, _ := m.Step(e); got != Closed {
				t.Errorf("%s left Closed for %s", e, got)
			}
		}
	}
}

func TestEndedStates(t *testing.T) {
	t.Parallel()
	var ended []string
	for s := range numStates {
		if s.Ended() {
			ended = append(ended, s.String())
		}
	}
	if got := strings.Join(ended, " "); got != "cancelling failed closed" {
		t.Errorf("ended states are %q", got)
	}
}
