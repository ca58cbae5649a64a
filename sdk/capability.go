package sdk

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// ProtocolVersion is the version of the contract between the engine and managed sources that this package describes. It
// is part of every [Capability].
const ProtocolVersion = 1

// Capability says what a source is and what it needs from an engine. It is recorded in the job plan and in every
// checkpoint; a restore with a source of another [Capability.Digest] fails before anything runs.
type Capability struct {
	// Connector is the name in job files, for example "kafka".
	Connector string
	// Version is the connector's semantic version. Only its major part enters the digest: a new major version says that
	// old checkpoints do not fit.
	Version string
	// Protocol is the contract version the source was written for; zero means [ProtocolVersion].
	Protocol int
	// Suite is the version of the conformance suite that this version of the connector passed, as whoever released it recorded:
	// conformance.Version at that time. Zero means no recorded pass; such a source runs in the managed lane only where the engine's
	// allowlist names it. It is no part of the digest: a checkpoint does not depend on it.
	Suite int

	// BoundedPoll: Poll honours the turn's budgets and never blocks. Required for the managed lane.
	BoundedPoll bool
	// Wakeup: Wakeup ends a running turn early. Required for the managed lane.
	Wakeup bool
	// AttemptFencing: the reader stops when Emit refuses a record. Required for the managed lane.
	AttemptFencing bool
	// AsyncEnumerator: discovery uses [CallAsync] and never blocks the coordinator loop. Required for the managed lane.
	AsyncEnumerator bool
	// SourceEvents: reader and enumerator exchange [Event] values, which are never durable.
	SourceEvents bool
	// OrderedLineage: some splits may be read only after others are finished and checkpointed.
	OrderedLineage bool
	// AckRequired: the system keeps data until it is told of completed checkpoints.
	AckRequired bool
}

// Managed reports what is missing for the managed lane, or nil.
func (c Capability) Managed() error {
	var missing []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"BoundedPoll", c.BoundedPoll}, {"Wakeup", c.Wakeup}, {"AttemptFencing", c.AttemptFencing}, {"AsyncEnumerator", c.AsyncEnumerator},
	} {
		if !f.has {
			missing = append(missing, f.name)
		}
	}
	switch {
	case c.Connector == "":
		return fmt.Errorf("%w: the capability has no connector name", ErrNotManaged)
	case c.protocol() != ProtocolVersion:
		return fmt.Errorf("%w: %s was written for protocol %d, this engine speaks %d", ErrNotManaged, c.Connector, c.protocol(), ProtocolVersion)
	case len(missing) > 0:
		return fmt.Errorf("%w: %s lacks %s", ErrNotManaged, c.Connector, strings.Join(missing, ", "))
	}
	return nil
}

func (c Capability) protocol() int {
	if c.Protocol == 0 {
		return ProtocolVersion
	}
	return c.Protocol
}

// Digest is a stable fingerprint of what a checkpoint depends on: 64 hexadecimal digits.
func (c Capability) Digest() string {
	major, _, _ := strings.Cut(c.Version, ".")
	text := fmt.Sprintf("penstock-capability-1\n%s\n%s\n%d\n%t %t %t %t %t %t %t\n", c.Connector, major, c.protocol(),
		c.BoundedPoll, c.Wakeup, c.AttemptFencing, c.AsyncEnumerator, c.SourceEvents, c.OrderedLineage, c.AckRequired)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
