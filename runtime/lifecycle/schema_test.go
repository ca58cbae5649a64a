package lifecycle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	boundRequest    = 7
	boundCheckpoint = sdk.CheckpointID(3)
)

// in returns a machine of request 7 in the given sub-state; in WaitingEnd it is bound to checkpoint 3.
func in(t *testing.T, state SchemaState) *Schema {
	t.Helper()
	s := &Schema{}
	for _, e := range []SchemaEvent{
		{Kind: SchemaBegin, Request: boundRequest},
		{Kind: SchemaQuiesced, Request: boundRequest},
		{Kind: SchemaTriggered, Request: boundRequest, Checkpoint: boundCheckpoint},
	}[:state] {
		if _, err := s.Step(e); err != nil {
			t.Fatal(err)
		}
	}
	if s.State() != state {
		t.Fatalf("reached %s, want %s", s.State(), state)
	}
	return s
}

// schemaCase is one answer of the reference.
type schemaCase struct {
	to      SchemaState
	outcome SchemaOutcome
	fails   bool
}

// reference answers for an event of the bound request and checkpoint, written as the sentences of the contract.
func reference(from SchemaState, k SchemaEventKind) schemaCase {
	ignored := schemaCase{to: from, outcome: SchemaIgnored}
	failed := schemaCase{to: Idle, fails: true}
	switch k {
	case SchemaFence: // forgets, in any state
		return schemaCase{to: Idle, outcome: SchemaContinue}
	case SchemaCloseLatched: // a close waits for the change
		if from == Idle {
			return schemaCase{to: Idle, outcome: SchemaDrain}
		}
		return schemaCase{to: from, outcome: SchemaContinue}
	case SchemaTimeout: // fails a change in any phase, and is late when none runs
		if from == Idle {
			return ignored
		}
		return failed
	case SchemaBegin: // the running request again
		if from == Idle {
			return schemaCase{to: Quiescing, outcome: SchemaContinue}
		}
		return ignored
	case SchemaQuiesced:
		if from == Quiescing {
			return schemaCase{to: TriggerRequested, outcome: SchemaRequestTrigger}
		}
	case SchemaTriggered:
		if from == TriggerRequested {
			return schemaCase{to: WaitingEnd, outcome: SchemaContinue}
		}
	case SchemaTriggerFailed:
		if from == TriggerRequested {
			return failed
		}
	case SchemaComplete:
		if from == WaitingEnd {
			return schemaCase{to: Idle, outcome: SchemaResume}
		}
	case SchemaAborted:
		if from == WaitingEnd {
			return failed
		}
	case numSchemaEvents:
	}
	return ignored
}

func TestSchemaMachineEveryTransition(t *testing.T) {
	t.Parallel()
	for from := range numSchemaStates {
		for k := range numSchemaEvents {
			t.Run(fmt.Sprintf("%s/%s", from, k), func(t *testing.T) {
				s := in(t, from)
				ignoredBefore := s.Ignored()
				got, err := s.Step(SchemaEvent{Kind: k, Request: boundRequest, Checkpoint: boundCheckpoint})
				want := reference(from, k)
				if s.State() != want.to || errors.Is(err, ErrSchemaChange) != want.fails || !want.fails && got != want.outcome {
					t.Errorf("got %s, outcome %d, %v; want %+v", s.State(), got, err, want)
				}
				if counted := s.Ignored() - ignoredBefore; (counted == 1) != (want.outcome == SchemaIgnored) {
					t.Errorf("ignored went up by %d", counted)
				}
				if s.MayPoll() != (s.State() == Idle) {
					t.Errorf("MayPoll is %t while %s", s.MayPoll(), s.State())
				}
			})
		}
	}
}

// An event of another request, or of another checkpoint once one is bound, changes nothing: it is ignored and counted. The
// exceptions are a fence, a latched close, and a begin, which have no need to match.
func TestSchemaMachineIgnoresStaleCallbacks(t *testing.T) {
	t.Parallel()
	for from := range numSchemaStates {
		for k := range numSchemaEvents {
			if k == SchemaFence || k == SchemaCloseLatched || k == SchemaBegin {
				continue
			}
			for _, request := range []uint64{boundRequest - 1, boundRequest + 1, 0} {
				s := in(t, from)
				before := s.Ignored()
				got, err := s.Step(SchemaEvent{Kind: k, Request: request, Checkpoint: boundCheckpoint})
				if err != nil || got != SchemaIgnored || s.State() != from || s.Ignored() != before+1 {
					t.Errorf("%s of request %d while %s: %d, %v, now %s", k, request, from, got, err, s.State())
				}
			}
		}
	}
	for _, k := range []SchemaEventKind{SchemaComplete, SchemaAborted} {
		for _, checkpoint := range []sdk.CheckpointID{boundCheckpoint - 1, boundCheckpoint + 1} {
			s := in(t, WaitingEnd)
			if got, err := s.Step(SchemaEvent{Kind: k, Request: boundRequest, Checkpoint: checkpoint}); err != nil || got != SchemaIgnored || s.State() != WaitingEnd {
				t.Errorf("%s of checkpoint %d: %d, %v, now %s", k, checkpoint, got, err, s.State())
			}
		}
	}
}

func TestSchemaMachineOverlapFailsTheTask(t *testing.T) {
	t.Parallel()
	for from := Quiescing; from < numSchemaStates; from++ {
		s := in(t, from)
		if _, err := s.Step(SchemaEvent{Kind: SchemaBegin, Request: boundRequest + 1}); !errors.Is(err, ErrSchemaChange) {
			t.Errorf("begin of another request while %s: %v", from, err)
		}
		if s.State() != Idle {
			t.Errorf("after an overlap the machine is %s", s.State())
		}
	}
}

// An old request never begins again, also not after its change is through: its late begin is a repeated callback.
func TestSchemaMachineBeginsEachRequestOnce(t *testing.T) {
	t.Parallel()
	s := in(t, WaitingEnd)
	if _, err := s.Step(SchemaEvent{Kind: SchemaComplete, Request: boundRequest, Checkpoint: boundCheckpoint}); err != nil {
		t.Fatal(err)
	}
	for _, request := range []uint64{boundRequest - 1, boundRequest} {
		if got, err := s.Step(SchemaEvent{Kind: SchemaBegin, Request: request}); err != nil || got != SchemaIgnored || !s.MayPoll() {
			t.Errorf("late begin of request %d: %d, %v", request, got, err)
		}
	}
	if _, err := s.Step(SchemaEvent{Kind: SchemaBegin, Request: boundRequest + 1}); err != nil || s.State() != Quiescing {
		t.Errorf("next request: %v, now %s", err, s.State())
	}
	if s.Request() != boundRequest+1 {
		t.Errorf("newest request is %d", s.Request())
	}
}

// A close that arrives during a change is latched, in whatever phase, and drains when the change is through.
func TestSchemaMachineLatchedCloseDrainsAfterTheChange(t *testing.T) {
	t.Parallel()
	for from := Quiescing; from < numSchemaStates; from++ {
		s := in(t, from)
		step := func(e SchemaEvent) SchemaOutcome {
			e.Request = boundRequest
			got, err := s.Step(e)
			if err != nil {
				t.Fatalf("%s: %v", e.Kind, err)
			}
			return got
		}
		step(SchemaEvent{Kind: SchemaCloseLatched})
		if from <= Quiescing {
			step(SchemaEvent{Kind: SchemaQuiesced})
		}
		if from <= TriggerRequested {
			step(SchemaEvent{Kind: SchemaTriggered, Checkpoint: boundCheckpoint})
		}
		if got := step(SchemaEvent{Kind: SchemaComplete, Checkpoint: boundCheckpoint}); got != SchemaDrain {
			t.Errorf("latched while %s: outcome %d, want SchemaDrain", from, got)
		}
		// The latch belongs to that change only.
		if _, err := s.Step(SchemaEvent{Kind: SchemaBegin, Request: boundRequest + 1}); err != nil {
			t.Fatal(err)
		}
		s.state, s.checkpoint = WaitingEnd, 9
		if got, _ := s.Step(SchemaEvent{Kind: SchemaComplete, Request: boundRequest + 1, Checkpoint: 9}); got != SchemaResume {
			t.Errorf("the next change ends with outcome %d", got)
		}
	}
}

func TestSchemaMachineFenceForgetsAndStaysStale(t *testing.T) {
	t.Parallel()
	for from := range numSchemaStates {
		s := in(t, from)
		if _, err := s.Step(SchemaEvent{Kind: SchemaFence}); err != nil || !s.MayPoll() {
			t.Errorf("fence while %s: %v", from, err)
		}
		if from == Idle {
			continue
		}
		if got, err := s.Step(SchemaEvent{Kind: SchemaComplete, Request: boundRequest, Checkpoint: boundCheckpoint}); err != nil || got != SchemaIgnored {
			t.Errorf("completion after the fence: %d, %v", got, err)
		}
	}
}

func TestSchemaMachineUnknownValues(t *testing.T) {
	t.Parallel()
	var s Schema
	if _, err := s.Step(SchemaEvent{Kind: numSchemaEvents}); !errors.Is(err, ErrIllegal) {
		t.Errorf("unknown event: %v", err)
	}
	if got := SchemaState(200).String() + SchemaEventKind(200).String(); got != "SchemaState(200)SchemaEventKind(200)" {
		t.Errorf("unknown values print as %s", got)
	}
}
