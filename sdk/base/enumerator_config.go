package base

import (
	"context"
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
	// FailAfter is how many discoveries in a row may fail before the epoch ends with the last error. Zero means
	// [DefaultFailAfter] until the first one has been recorded, because until then the job does nothing, and never
	// after that, because readers go on with what they have. [NeverFail] means never.
	FailAfter int
	// OnRemoved is told, on the coordinator loop, of known splits that a discovery did not find any more, once each until
	// they are found again. They stay known: a gap in metadata must not make a split start again.
	OnRemoved func([]sdk.SplitID)
}
