package base

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// DefaultCloseTimeout is how long Close waits for a running Fetch.
const DefaultCloseTimeout = 10 * time.Second

// withDefaults returns a copy with zero values replaced.
func (c Config[E, S, St]) withDefaults() Config[E, S, St] {
	if c.MaxFetchers == 0 {
		c.MaxFetchers = DefaultMaxFetchers
	}
	if c.QueueFetches == 0 {
		c.QueueFetches = DefaultQueueFetches
	}
	if c.QueueBytes == 0 {
		c.QueueBytes = DefaultQueueBytes
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = DefaultCloseTimeout
	}
	if c.ToState == nil && c.ToSplit == nil {
		// Only reached when St is S, which validate has made sure of. The pointer keeps the conversion from allocating.
		c.ToState = func(s S) St { return *any(&s).(*St) }
		c.ToSplit = func(st *St) S { return *any(st).(*S) }
	}
	return c
}

// validate reports everything that is wrong, not only the first.
func (c Config[E, S, St]) validate() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	_, same := any((*St)(nil)).(*S)
	wrong(c.Fetcher == nil, "Fetcher is not set: it makes the split reader")
	wrong(c.Emit == nil && c.EmitChunk == nil, "neither Emit nor EmitChunk is set: set one")
	wrong(c.Emit != nil && c.EmitChunk != nil, "Emit and EmitChunk are both set: set one")
	wrong((c.ToState == nil) != (c.ToSplit == nil), "only one of ToState and ToSplit is set: set both")
	wrong(c.ToState == nil && c.ToSplit == nil && !same, "ToState and ToSplit are not set, but the state %T is not the split %T: set both", *new(St), *new(S))
	wrong(c.MaxFetchers < 0, "MaxFetchers is %d: use 0 for the default of %d, or more", c.MaxFetchers, DefaultMaxFetchers)
	wrong(c.QueueFetches < 0, "QueueFetches is %d: use 0 for the default of %d, or more", c.QueueFetches, DefaultQueueFetches)
	wrong(c.QueueBytes < 0, "QueueBytes is %d: use 0 for the default of %d, or more", c.QueueBytes, int64(DefaultQueueBytes))
	wrong(c.CloseTimeout < 0, "CloseTimeout is %s: use 0 for the default of %s, or more", c.CloseTimeout, DefaultCloseTimeout)
	wrong(!(c.RecordsPerSecond >= 0) || math.IsInf(c.RecordsPerSecond, 0), "RecordsPerSecond is %v: use 0 for no limit, or more", c.RecordsPerSecond)
	return errors.Join(errs...)
}

// checkSplitID reports an id that no engine takes.
func checkSplitID(id sdk.SplitID) error {
	switch {
	case id == "":
		return errors.New("a split has an empty id")
	case len(id) > sdk.MaxSplitIDBytes:
		return fmt.Errorf("the id of split %.40q... has %d bytes, at most %d are allowed", id, len(id), sdk.MaxSplitIDBytes)
	}
	return nil
}
