package inspect

import (
	"slices"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// View is one checkpoint.
type View struct {
	File        string           `json:"file"`
	Bytes       int64            `json:"bytes"`
	Job         string           `json:"job"`
	Checkpoint  sdk.CheckpointID `json:"checkpoint"`
	Kind        string           `json:"kind"`
	Triggered   time.Time        `json:"triggered"`
	Completed   time.Time        `json:"completed"`
	Records     int64            `json:"records"`
	Parallelism int              `json:"parallelism"`
	Exchange    string           `json:"exchange"`
	Lane        string           `json:"lane"`
	Connector   string           `json:"connector"`
	Version     string           `json:"connector_version"`
	Digest      string           `json:"capability_digest"`
	Sink        string           `json:"sink"`
	LastAttempt uint64           `json:"last_attempt"`
	Epoch       uint64           `json:"coordinator_epoch"`
	Enumerator  int              `json:"enumerator_bytes"`
	Prepared    int              `json:"prepared_bytes"`
	Splits      []Split          `json:"splits"`
	Assignments []Assignment     `json:"assignments"`
	Lineage     []Descent        `json:"lineage,omitempty"` // of splits that have one, ascending
	Problem     string           `json:"lineage_problem,omitempty"`
}

// Split is one split of a reader.
type Split struct {
	Split      string      `json:"split"`
	Reader     int         `json:"reader"`
	State      string      `json:"state"` // active, finished
	Attributes []Attribute `json:"attributes"`
	Problem    string      `json:"problem,omitempty"` // why the position is not known
}

// Attribute is a fact about a split, as its connector tells it.
type Attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Assignment is a split that was on its way to a reader when the checkpoint was cut.
type Assignment struct {
	Split  string `json:"split"`
	Reader int    `json:"reader"`
}

// Describe decodes a split; nil when the connector is not known.
type Describe func(split protocol.Split) ([]sdk.Attribute, error)

// NewView explains a manifest that stands in a file of so many bytes.
func NewView(m *protocol.Manifest, file string, size int64, describe Describe) View {
	v := View{
		File: file, Bytes: size, Job: m.Job, Checkpoint: m.ID, Kind: m.Kind.String(), Triggered: m.Triggered, Completed: m.Completed,
		Records: m.Records, Parallelism: m.Parallelism, Exchange: m.Exchange, Lane: m.Lane.String(),
		Connector: m.Connector, Version: m.ConnectorVersion, Digest: m.CapabilityDigest, Sink: m.Sink,
		LastAttempt: uint64(m.LastAttempt), Epoch: uint64(m.Coordinator.Epoch), Enumerator: len(m.Coordinator.Enumerator.Data),
		Splits: []Split{}, Assignments: []Assignment{},
	}
	for _, r := range m.Readers {
		for _, s := range r.Splits {
			v.Splits = append(v.Splits, newSplit(s, r.Reader, "active", describe))
		}
		for _, s := range r.Finished {
			v.Splits = append(v.Splits, newSplit(s, r.Reader, "finished", describe))
		}
	}
	for _, a := range m.Coordinator.Tracker {
		for _, s := range a.Splits {
			if slices.ContainsFunc(v.Splits, func(held Split) bool { return held.Split == string(s.ID) && held.Reader == int(a.Reader) }) {
				continue // the tracker forgets it only after the checkpoint
			}
			v.Assignments = append(v.Assignments, Assignment{Split: string(s.ID), Reader: int(a.Reader)})
		}
	}
	for _, s := range m.Sinks {
		for _, p := range s.Prepared {
			v.Prepared += len(p.Data)
		}
	}
	return v
}

func newSplit(s protocol.Split, reader sdk.ReaderID, state string, describe Describe) Split {
	out := Split{Split: string(s.ID), Reader: int(reader), State: state, Attributes: []Attribute{}}
	if describe == nil {
		out.Problem = "this build does not have the connector"
		return out
	}
	attributes, err := describe(s)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	for _, a := range attributes {
		out.Attributes = append(out.Attributes, Attribute(a))
	}
	return out
}
