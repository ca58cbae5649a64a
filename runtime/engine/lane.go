package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// ErrLane marks a job that cannot run in the lane it asks for, or was recorded with.
var ErrLane = errors.New("lane")

// lane chooses the lane of a new deployment. The legacy lane is the default for whatever is not eligible, and this build has
// none, so such a job is refused here and now instead of running differently than asked.
func (j Job) lane() (protocol.Lane, error) {
	o, c := j.Options, j.Source.Capability()
	switch {
	case o.Lane == "b":
		return 0, fmt.Errorf("%w: runtime.lane is b, but this build has no legacy runtime (lane B): use a or auto", ErrLane)
	case o.KillSwitch:
		return 0, fmt.Errorf("%w: runtime.kill_switch keeps new deployments and restores out of the managed lane (A), and this build has no "+
			"lane B: switch it off to run %s", ErrLane, c.Connector)
	case len(o.Allowlist) > 0 && !slices.Contains(o.Allowlist, c.Connector):
		return 0, fmt.Errorf("%w: connector %q is not in runtime.allowlist %v, and this build has no lane B: add it there", ErrLane, c.Connector, o.Allowlist)
	}
	if err := c.Managed(); err != nil {
		return 0, fmt.Errorf("%w: %w, and this build has no lane B", ErrLane, err)
	}
	if c.Suite < 1 && len(o.Allowlist) == 0 {
		return 0, fmt.Errorf("%w: connector %q has no recorded pass of the conformance suite (Capability.Suite is %d): when conformance.Run "+
			"passes, set it to conformance.Version; to run it unproven, name it in runtime.allowlist (Options.Allowlist)", ErrLane, c.Connector, c.Suite)
	}
	return protocol.LaneA, nil
}

// checkRestore compares what a checkpoint recorded with what is about to run. It never chooses anew: a difference fails before
// anything runs.
func (j Job) checkRestore(m *protocol.Manifest, lane protocol.Lane) error {
	c := j.Source.Capability()
	remedy := "run it with what it was taken with, or start anew with --restore none"
	switch {
	case m.Job != j.Name:
		return fmt.Errorf("checkpoint %d belongs to job %q, this is %q: %s", m.ID, m.Job, j.Name, remedy)
	case m.Lane != lane:
		return fmt.Errorf("%w: checkpoint %d was taken in lane %s, this job would run in lane %s: %s", ErrLane, m.ID, m.Lane, lane, remedy)
	case m.Connector != c.Connector:
		return fmt.Errorf("%w: checkpoint %d was taken with the source %s, this job has %s: %s", sdk.ErrIncompatibleState, m.ID, m.Connector, c.Connector, remedy)
	case m.CapabilityDigest != c.Digest():
		return fmt.Errorf("%w: checkpoint %d was taken with %s %s (capability digest %.12s), this build has %s (digest %.12s): %s",
			sdk.ErrIncompatibleState, m.ID, m.Connector, m.ConnectorVersion, m.CapabilityDigest, c.Version, c.Digest(), remedy)
	case !complete(m):
		return fmt.Errorf("%w: checkpoint %d has the parts of %d readers, and was taken with %d", sdk.ErrCorrupt, m.ID, len(m.Readers), m.Parallelism)
	case m.Sink != j.Sink.Name() && hasPrepared(m):
		return fmt.Errorf("%w: checkpoint %d holds prepared output of the sink %s, this job has %s, which cannot commit it: %s",
			sdk.ErrIncompatibleState, m.ID, m.Sink, j.Sink.Name(), remedy)
	}
	return nil
}

// complete reports whether every reader of the cut has exactly one part: what is missing would be lost.
func complete(m *protocol.Manifest) bool {
	seen := make([]bool, m.Parallelism)
	for _, r := range m.Readers {
		if int(r.Reader) >= len(seen) || seen[r.Reader] {
			return false
		}
		seen[r.Reader] = true
	}
	return len(m.Readers) == m.Parallelism
}

func hasPrepared(m *protocol.Manifest) bool {
	return slices.ContainsFunc(m.Sinks, func(s protocol.SinkState) bool { return len(s.Prepared) > 0 })
}
