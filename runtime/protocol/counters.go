package protocol

import (
	"fmt"
	"math"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
	"github.com/penstock-dev/penstock/sdk"
)

// CountersVersion is the version of [Counters] that this build writes. Every published version stays readable.
const CountersVersion = 1

// Counters is what a state directory must remember even when no checkpoint completed: whose it is, and which numbers were
// given out. The names of a sink's hidden files are built from these numbers, so none may ever be used twice.
type Counters struct {
	Job            string
	NextAttempt    Attempt          // at least 1; nothing from here on was given out
	NextCheckpoint sdk.CheckpointID // likewise
}

// Encode returns the counters as a frame.
func (c *Counters) Encode() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("encode %v: %w", countersFrame, err)
	}
	return seal(countersFrame, CountersVersion, &wire.Counters{
		Job: []byte(c.Job), NextAttempt: uint64(c.NextAttempt), NextCheckpoint: uint64(c.NextCheckpoint),
	})
}

// DecodeCounters decodes what [Counters.Encode] wrote.
func DecodeCounters(b []byte) (*Counters, error) {
	body, err := open(countersFrame, CountersVersion, b)
	if err != nil {
		return nil, err
	}
	var w wire.Counters
	if err := unmarshal(body, &w, maxFixedElements); err != nil {
		return nil, corrupt(countersFrame, "%v", err)
	}
	c := &Counters{Job: string(w.GetJob()), NextAttempt: Attempt(w.GetNextAttempt()), NextCheckpoint: checkpointID(w.GetNextCheckpoint())}
	if err := c.check(); err != nil {
		return nil, corrupt(countersFrame, "%v", err)
	}
	return c, nil
}

func (c *Counters) check() error {
	if err := checkName("Job", c.Job, true); err != nil {
		return err
	}
	if c.NextAttempt < 1 || c.NextAttempt > math.MaxInt64 {
		return invalid("NextAttempt", c.NextAttempt, "1 to 9223372036854775807")
	}
	return checkCheckpoint("NextCheckpoint", c.NextCheckpoint)
}
