package base

import "time"

// Burst of the rate limit: what may pass at once after a pause, as a share of a second, and never less than one record.
const burstShare = 20

// minPause keeps a high limit from arming a timer for each record; maxPause keeps a tiny one from overflowing it.
const (
	minPause = time.Millisecond
	maxPause = time.Hour
)

// bucket is a token bucket without a clock of its own: time comes in. The zero value limits nothing. A turn may take more
// than there is, because one element may fan out into many records; the debt is paid by a longer pause.
type bucket struct {
	rate, burst, tokens float64
	last                time.Time
}

func newBucket(recordsPerSecond float64) bucket {
	burst := max(1, recordsPerSecond/burstShare)
	return bucket{rate: recordsPerSecond, burst: burst, tokens: burst}
}

func (b *bucket) limits() bool { return b.rate > 0 }

// available refills up to now and answers how many whole records may pass.
func (b *bucket) available(now time.Time) int {
	if !b.last.IsZero() {
		b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	}
	b.last = now
	return max(0, int(b.tokens))
}

// spend takes what a turn emitted.
func (b *bucket) spend(records int) { b.tokens -= float64(records) }

// pause is how long it takes until a record may pass.
func (b *bucket) pause() time.Duration {
	missing := min((1-b.tokens)/b.rate, maxPause.Seconds())
	// Rounded up, so that the timer never rings a moment before the token is there.
	return max(minPause, time.Duration(missing*float64(time.Second))+time.Microsecond)
}
