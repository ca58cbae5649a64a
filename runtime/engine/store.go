package engine

import (
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// counters give out numbers that never repeat.
type counters struct {
	next   protocol.Attempt
	last   protocol.Attempt // highest reserved
	nextID sdk.CheckpointID
}
