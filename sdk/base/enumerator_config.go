package base

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Round is the immutable input of one discovery. It may be used from the worker that runs it, and no longer.
type Round struct {
	// First is true until a discovery has been recorded, also one that found nothing. It decides where new splits start:
	// what exists at the first discovery starts where the user said, what appears later starts at its beginning, because
	// everything in it came after the job began.
	First bool
	// Known reports whether a split needs no start position any more.
	Known func(sdk.SplitID) bool
	// Unfinished yields the ids of the known splits that have not ended, ascending: what is expected to exist.
	Unfinished iter.Seq[sdk.SplitID]
}

// NeverFail as FailAfter keeps an enumerator trying for ever.
const NeverFail = -1

// DefaultFailAfter is how many failures in a row end the epoch before the first discovery has been recorded.
const DefaultFailAfter = 5

// EnumeratorConfig describes an enumerator to [NewEnumerator]. Only Discover is required.
type EnumeratorConfig[S sdk.Split] struct {
	// Discover returns the complete list of splits that exist now; those not Known carry their concrete start position. It
	// runs on a worker and must touch nothing of the enumerator; ctx ends at the Timeout and at the end of the epoch. An
	// error changes nothing in the state: it is logged, counted, and tried again after 1 s, 2 s, 4 s, up to a minute. An
	// error that is [sdk.ErrFatal] or [sdk.ErrIncompatibleState] ends the epoch at once.
	Discover func(ctx context.Context, round Round) ([]S, error)

	// Interval is the pause between the end of one discovery and the start of the next. Zero means that one recorded
	// discovery is all.
	Interval time.Duration
	// Timeout of one discovery; zero means one minute.
	Timeout time.Duration
	// Assign chooses the reader of a split; nil means [LeastLoaded].
	Assign Strategy[S]
	// Bounded says that the first recorded discovery is the last, whatever the Interval. With it, and with an Interval of
	// zero, readers are told that no more splits follow once all are assigned.
	Bounded bool
	// Durable holds newly discovered splits back until a checkpoint that contains them has completed, so that a position
	// which was resolved once (latest, a timestamp) can never be resolved anew after a crash. When the job takes no
	// checkpoints they are assigned at once.
	Durable bool
	// Identity is the configuration that the state depends on: the topics, the stop. It is stored with the state. A
	// restored state with another identity is refused with [sdk.ErrIncompatibleState].
	Identity []sdk.Attribute
	// Compatible is asked of each attribute whose value is not the stored one, by its name, and answers whether the state may be
	// used all the same: a list of topics that has grown. Snapshots hold the new value from then on. Nil allows no difference.
	Compatible func(stored, configured sdk.Attribute) bool
	// FailAfter is how many discoveries in a row may fail before the epoch ends with the last error. Zero means
	// [DefaultFailAfter] until the first one has been recorded, because until then the job does nothing, and never
	// after that, because readers go on with what they have. [NeverFail] means never.
	FailAfter int
	// OnRemoved is told, on the coordinator loop, of known splits that a discovery did not find any more, once each until
	// they are found again. They stay known: a gap in metadata must not make a split start again.
	OnRemoved func([]sdk.SplitID)
}

// Pauses between failing discoveries.
const (
	minDiscoveryPause = time.Second
	maxDiscoveryPause = time.Minute
)

// discoveryPause is how long to wait after that many failures in a row.
func discoveryPause(failures int) time.Duration {
	pause := minDiscoveryPause
	for i := 1; i < failures && pause < maxDiscoveryPause; i++ {
		pause *= 2
	}
	return min(pause, maxDiscoveryPause)
}

// failAfter is the number of failures in a row that ends the epoch, 0 for none.
func (c *EnumeratorConfig[S]) failAfter(firstDone bool) int {
	switch {
	case c.FailAfter > 0:
		return c.FailAfter
	case c.FailAfter == 0 && !firstDone:
		return DefaultFailAfter
	default:
		return 0
	}
}

// validate reports everything that is wrong, not only the first.
func (c *EnumeratorConfig[S]) validate() error {
	var errs []error
	if c.Discover == nil {
		errs = append(errs, errors.New("Discover is not set: it lists the splits that exist"))
	}
	if c.Interval < 0 {
		errs = append(errs, fmt.Errorf("Interval is %s: use 0 for one discovery, or more", c.Interval))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %s: use 0 for one minute, or more", c.Timeout))
	}
	if c.FailAfter < NeverFail {
		errs = append(errs, fmt.Errorf("FailAfter is %d: use 0 for the default, NeverFail, or a number of tries", c.FailAfter))
	}
	names := make(map[string]bool, len(c.Identity))
	for _, a := range c.Identity {
		if names[a.Name] {
			errs = append(errs, fmt.Errorf("Identity names %q twice", a.Name))
		}
		names[a.Name] = true
	}
	return errors.Join(errs...)
}
