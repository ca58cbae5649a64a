package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// restarts is the restart policy: exponential back-off, and a limit per window. It is pure; the job loop owns it.
type restarts struct {
	initial, max time.Duration
	limit        int
	window       time.Duration
	times        []time.Time // of restarts within the window
}

// next decides about a failure at now: how long to wait, or that it is one too many.
func (r *restarts) next(now time.Time) (delay time.Duration, ok bool) {
	r.times = slices.DeleteFunc(r.times, func(t time.Time) bool { return now.Sub(t) >= r.window })
	if len(r.times) >= r.limit {
		return 0, false
	}
	delay = r.initial
	for range r.times {
		delay = min(2*delay, r.max)
	}
	r.times = append(r.times, now)
	return delay, true
}

// curable reports whether a restart may help.
func curable(err error) bool {
	return !errors.Is(err, sdk.ErrFatal) && !errors.Is(err, sdk.ErrIncompatibleState) && !errors.Is(err, sdk.ErrCorrupt)
}
