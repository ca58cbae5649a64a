package telemetry

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// buckets is the number of buckets of a [Histogram]: upper bounds of 1 µs doubled up to 67 s, and one for what is longer.
const buckets = 28

// Histogram counts durations in buckets whose bounds double: 1 µs, 2 µs, 4 µs ... 67.1 s, and longer. An observation costs
// two atomic adds. The zero value is ready; any goroutine may use it.
type Histogram struct {
	sum    atomic.Int64 // nanoseconds
	counts [buckets]atomic.Uint64
}

// Observe counts d; a negative one counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	if d < 0 {
		d = 0
	}
	h.sum.Add(int64(d))
	h.counts[bucketOf(d)].Add(1)
}

// bucketOf is the first bucket whose upper bound is not below d.
func bucketOf(d time.Duration) int {
	if d <= time.Microsecond {
		return 0
	}
	return min(bits.Len64(uint64(d-1)/uint64(time.Microsecond)), buckets-1)
}

// bounds are the upper bounds of all buckets but the last, in seconds.
func bounds() []float64 {
	b := make([]float64, buckets-1)
	for i := range b {
		b[i] = (time.Microsecond << i).Seconds()
	}
	return b
}

// Distribution is what a [Histogram] held at one moment, or several of them together.
type Distribution struct {
	Sum    time.Duration
	counts [buckets]uint64
}

// Distribution reads the histogram. Observations made meanwhile may be in it or not.
func (h *Histogram) Distribution() Distribution {
	var d Distribution
	d.add(h)
	return d
}

func (d *Distribution) add(h *Histogram) {
	d.Sum += time.Duration(h.sum.Load())
	for i := range h.counts {
		d.counts[i] += h.counts[i].Load()
	}
}

// Count is the number of observations.
func (d *Distribution) Count() uint64 {
	var n uint64
	for _, c := range d.counts {
		n += c
	}
	return n
}

// Quantile is an upper bound, at most twice too high, of the duration that a share q (0 to 1) of the observations did not
// exceed. It is zero without observations; beyond the last bound it answers the last bound.
func (d *Distribution) Quantile(q float64) time.Duration {
	count := d.Count()
	if count == 0 {
		return 0
	}
	rank := max(uint64(q*float64(count)+0.5), 1)
	var seen uint64
	for i, c := range d.counts {
		if seen += c; seen >= rank {
			return time.Microsecond << min(i, buckets-2)
		}
	}
	return time.Microsecond << (buckets - 2)
}
