package protocol

import (
	"fmt"
	"time"
)

func (m *Manifest) check() error {
	names := []struct {
		field, name string
		required    bool
	}{
		{"Job", m.Job, true},
		{"Exchange", m.Exchange, false},
		{"Connector", m.Connector, false},
		{"ConnectorVersion", m.ConnectorVersion, false},
		{"CapabilityDigest", m.CapabilityDigest, false},
		{"Sink", m.Sink, false},
	}
	for _, n := range names {
		if err := checkName(n.field, n.name, n.required); err != nil {
			return err
		}
	}
	switch {
	case m.ID < 1:
		return checkCheckpoint("ID", m.ID)
	case !m.Kind.Known():
		return invalid("Kind", m.Kind, "a checkpoint kind")
	case !m.Lane.Known():
		return invalid("Lane", m.Lane, "a lane")
	case m.Parallelism < 1 || m.Parallelism > MaxParallelism:
		return invalid("Parallelism", m.Parallelism, fmt.Sprintf("1 to %d", MaxParallelism))
	case m.Records < 0:
		return invalid("Records", m.Records, "at least 0")
	case !timeFits(m.Triggered):
		return invalid("Triggered", m.Triggered, "zero or a year from 1678 to 2261")
	case !timeFits(m.Completed):
		return invalid("Completed", m.Completed, "zero or a year from 1678 to 2261")
	}
	if n := m.elements(); n > maxManifestElements {
		return fmt.Errorf("%w: %d elements (splits, assignments, prepared commits), a manifest holds at most %d", errInvalid, n, maxManifestElements)
	}
	return m.checkParts()
}

// elements counts what checkShape will count in the encoded manifest.
func (m *Manifest) elements() int {
	n := 2 // the coordinator and its enumerator
	for i := range m.Coordinator.Tracker {
		n += 1 + len(m.Coordinator.Tracker[i].Splits)
	}
	for i := range m.Readers {
		n += 1 + len(m.Readers[i].Splits) + len(m.Readers[i].Finished)
	}
	for i := range m.Sinks {
		n += 1 + len(m.Sinks[i].Prepared)
	}
	return n
}

func (m *Manifest) checkParts() error {
	if err := m.Coordinator.check(); err != nil {
		return fmt.Errorf("Coordinator: %w", err)
	}
	for i := range m.Readers {
		if err := m.Readers[i].check(); err != nil {
			return fmt.Errorf("Readers[%d]: %w", i, err)
		}
	}
	for i := range m.Sinks {
		if err := m.Sinks[i].check(); err != nil {
			return fmt.Errorf("Sinks[%d]: %w", i, err)
		}
	}
	return nil
}

func checkIndex(field string, index int) error {
	if index < 0 || index >= MaxParallelism {
		return invalid(field, index, fmt.Sprintf("0 to %d", MaxParallelism-1))
	}
	return nil
}

func (c *CoordinatorState) check() error {
	if err := checkVersion("Enumerator", c.Enumerator.Version); err != nil {
		return err
	}
	for i := range c.Tracker {
		a := &c.Tracker[i]
		if err := checkIndex("Reader", int(a.Reader)); err != nil {
			return fmt.Errorf("Tracker[%d]: %w", i, err)
		}
		if err := checkSplits("Splits", a.Splits); err != nil {
			return fmt.Errorf("Tracker[%d]: %w", i, err)
		}
	}
	return nil
}

func (r *ReaderState) check() error {
	if err := checkIndex("Reader", int(r.Reader)); err != nil {
		return err
	}
	if err := checkSplits("Splits", r.Splits); err != nil {
		return err
	}
	return checkSplits("Finished", r.Finished)
}

func (s *SinkState) check() error {
	if err := checkIndex("Task", s.Task); err != nil {
		return err
	}
	for i := range s.Prepared {
		if err := checkCheckpoint(fmt.Sprintf("Prepared[%d].Checkpoint", i), s.Prepared[i].Checkpoint); err != nil {
			return err
		}
	}
	return nil
}

// timeFits reports whether a time survives as nanoseconds since 1970, in which zero is the zero time.
func timeFits(t time.Time) bool {
	return t.IsZero() || (t.Year() >= 1678 && t.Year() <= 2261 && t.UnixNano() != 0)
}
