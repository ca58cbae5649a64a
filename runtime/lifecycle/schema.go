package lifecycle

import (
	"errors"
	"fmt"

	"github.com/penstock-dev/penstock/sdk"
)

// SchemaState is the sub-state of a schema change.
type SchemaState uint8

// Sub-states of a schema change.
const (
	Idle SchemaState = iota
	Quiescing
	TriggerRequested
	WaitingEnd
	numSchemaStates
)

var schemaNames = [numSchemaStates]string{"idle", "quiescing", "trigger-requested", "waiting-end"}

func (s SchemaState) String() string {
	if s < numSchemaStates {
		return schemaNames[s]
	}
	return fmt.Sprintf("SchemaState(%d)", uint8(s))
}

// SchemaEventKind is what happened to a schema change.
type SchemaEventKind uint8

// Events of a schema change.
const (
	SchemaBegin         SchemaEventKind = iota // a change was found; binds Request
	SchemaQuiesced                             // no turn runs any more
	SchemaTriggered                            // the schema checkpoint has started; binds Checkpoint
	SchemaTriggerFailed                        // it could not be started
	SchemaComplete                             // it completed
	SchemaAborted                              // it was aborted
	SchemaTimeout                              // it took too long
	SchemaFence                                // cancel or fatal failure: forget the request
	SchemaCloseLatched                         // a graceful close or end of input arrived
	numSchemaEvents
)

var schemaEventNames = [numSchemaEvents]string{
	"begin", "quiesced", "triggered", "trigger-failed", "complete", "aborted", "timeout", "fence", "close-latched",
}

func (k SchemaEventKind) String() string {
	if k < numSchemaEvents {
		return schemaEventNames[k]
	}
	return fmt.Sprintf("SchemaEventKind(%d)", uint8(k))
}

// SchemaEvent is an input of [Schema.Step].
type SchemaEvent struct {
	Kind       SchemaEventKind
	Request    uint64           // request epoch
	Checkpoint sdk.CheckpointID // schema checkpoint, from SchemaTriggered on
}

// SchemaOutcome is what a task does after a step.
type SchemaOutcome uint8

// Outcomes of a step.
const (
	SchemaContinue       SchemaOutcome = iota // go on in the new sub-state
	SchemaRequestTrigger                      // ask for the schema checkpoint
	SchemaResume                              // the change is through: poll again
	SchemaDrain                               // the change is through, and a close was latched meanwhile
	SchemaIgnored                             // stale or repeated: counted, nothing changed
)

// ErrSchemaChange marks a schema change that fails its task: aborted, timed out, overlapping, or never triggered.
var ErrSchemaChange = errors.New("schema change failed")

// Schema is the schema-change machine. It is owned by one goroutine.
type Schema struct {
	state      SchemaState
	request    uint64
	checkpoint sdk.CheckpointID
	latched    bool
	ignored    uint64
}

// State is the current sub-state.
func (s *Schema) State() SchemaState { return s.state }

// Ignored counts stale and repeated events.
func (s *Schema) Ignored() uint64 { return s.ignored }

// MayPoll reports that a new turn may run: never during a schema change.
func (s *Schema) MayPoll() bool { return s.state == Idle }

// Step applies e. An error wraps [ErrSchemaChange] and fails the task; the machine is idle afterwards.
func (s *Schema) Step(e SchemaEvent) (SchemaOutcome, error) {
	switch e.Kind {
	case SchemaFence:
		s.reset()
		return SchemaContinue, nil
	case SchemaCloseLatched:
		if s.state == Idle {
			return SchemaDrain, nil
		}
		s.latched = true
		return SchemaContinue, nil
	case SchemaBegin:
		return s.begin(e)
	case SchemaQuiesced, SchemaTriggered, SchemaTriggerFailed, SchemaComplete, SchemaAborted, SchemaTimeout:
		if s.state == Idle || e.Request != s.request {
			return s.ignore()
		}
		return s.advance(e)
	default:
		return SchemaContinue, fmt.Errorf("%w: unknown event %s", ErrIllegal, e.Kind)
	}
}

func (s *Schema) begin(e SchemaEvent) (SchemaOutcome, error) {
	if s.state != Idle {
		if e.Request == s.request {
			return s.ignore()
		}
		return s.fail("request %d overlaps request %d, which is %s", e.Request, s.request, s.state)
	}
	if e.Request <= s.request {
		return s.ignore()
	}
	s.state, s.request, s.checkpoint, s.latched = Quiescing, e.Request, 0, false
	return SchemaContinue, nil
}

// advance handles an event of the bound request.
func (s *Schema) advance(e SchemaEvent) (SchemaOutcome, error) {
	switch {
	case e.Kind == SchemaTimeout:
		return s.fail("request %d timed out while %s", s.request, s.state)
	case e.Kind == SchemaTriggerFailed && s.state == TriggerRequested:
		return s.fail("the checkpoint of request %d could not be started", s.request)
	case e.Kind == SchemaQuiesced && s.state == Quiescing:
		s.state = TriggerRequested
		return SchemaRequestTrigger, nil
	case e.Kind == SchemaTriggered && s.state == TriggerRequested:
		s.state, s.checkpoint = WaitingEnd, e.Checkpoint
		return SchemaContinue, nil
	case s.state != WaitingEnd || e.Checkpoint != s.checkpoint:
		return s.ignore()
	case e.Kind == SchemaAborted:
		return s.fail("checkpoint %d of request %d was aborted", s.checkpoint, s.request)
	case e.Kind == SchemaComplete:
		latched := s.latched
		s.reset()
		if latched {
			return SchemaDrain, nil
		}
		return SchemaResume, nil
	default:
		return s.ignore()
	}
}

func (s *Schema) ignore() (SchemaOutcome, error) {
	s.ignored++
	return SchemaIgnored, nil
}

func (s *Schema) fail(format string, args ...any) (SchemaOutcome, error) {
	err := fmt.Errorf("%w: "+format, append([]any{ErrSchemaChange}, args...)...)
	s.reset()
	return SchemaContinue, err
}

// reset forgets the change but keeps the newest request number, so that its late callbacks stay stale.
func (s *Schema) reset() { s.state, s.checkpoint, s.latched = Idle, 0, false }

// Request is the newest request epoch that was begun.
func (s *Schema) Request() uint64 { return s.request }
