package telemetry

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// instrument names one field of a stats struct. Several may share a name: then they differ in the value of one label, and
// have the same unit and help.
type instrument struct {
	name, unit, help string
	label, value     string // of the label beside those of the struct; both empty when there is none
	source           source
}

// source is a field that can be collected.
type source interface {
	kind() kind
	// collect adds the present value, or nothing when it is unknown.
	collect(into *family, at point)
}

// inheritor is a source whose count goes on in the next attempt.
type inheritor interface {
	inherit(old source, now time.Time)
}

// inherit lets the counts of fresh go on from those of old. Both are lists of the same struct type.
func inherit(fresh, old []instrument, now time.Time) {
	for i := range fresh {
		if s, ok := fresh[i].source.(inheritor); ok {
			s.inherit(old[i].source, now)
		}
	}
}

type kind uint8

const (
	counterKind   kind = iota // whole numbers that grow
	timeKind                  // seconds that grow
	levelKind                 // whole number, always known
	valueKind                 // number that may be unknown
	histogramKind             // durations
)

func (k kind) String() string {
	return nameOf(int(k), "counter", "counter", "gauge", "gauge", "histogram")
}

// point is where and when a value is collected.
type point struct {
	attributes attribute.Set
	value      string // of the instrument's own label, by which histograms are merged
	merged     attribute.Set
	start, now time.Time
}

// family gathers the data points of one metric.
type family struct {
	name, unit, help string
	kind             kind
	whole            []metricdata.DataPoint[int64]
	real             []metricdata.DataPoint[float64]
	merged           []merged
}

// merged is a distribution over all readers or tasks.
type merged struct {
	value      string
	attributes attribute.Set
	Distribution
}

func (f *family) addWhole(at point, n int64) {
	f.whole = append(f.whole, metricdata.DataPoint[int64]{Attributes: at.attributes, StartTime: at.start, Time: at.now, Value: n})
}

func (f *family) addReal(at point, n float64) {
	f.real = append(f.real, metricdata.DataPoint[float64]{Attributes: at.attributes, StartTime: at.start, Time: at.now, Value: n})
}

func (f *family) addHistogram(at point, h *Histogram) {
	for i := range f.merged {
		if f.merged[i].value == at.value {
			f.merged[i].add(h)
			return
		}
	}
	m := merged{value: at.value, attributes: at.merged}
	m.add(h)
	f.merged = append(f.merged, m)
}

// metric turns the family into OpenTelemetry's form. ok is false when it has no data point.
func (f *family) metric(start, now time.Time) (m metricdata.Metrics, ok bool) {
	m = metricdata.Metrics{Name: f.name, Description: f.help, Unit: f.unit}
	switch f.kind {
	case counterKind:
		m.Data = metricdata.Sum[int64]{DataPoints: f.whole, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	case timeKind:
		m.Data = metricdata.Sum[float64]{DataPoints: f.real, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	case levelKind:
		m.Data = metricdata.Gauge[int64]{DataPoints: f.whole}
	case valueKind:
		m.Data = metricdata.Gauge[float64]{DataPoints: f.real}
	case histogramKind:
		h := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for i := range f.merged {
			d := &f.merged[i]
			h.DataPoints = append(h.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: d.attributes, StartTime: start, Time: now,
				Count: d.Count(), Bounds: bounds(), BucketCounts: append([]uint64(nil), d.counts[:]...), Sum: d.Sum.Seconds(),
			})
		}
		m.Data = h
	}
	return m, len(f.whole)+len(f.real)+len(f.merged) > 0
}

func (*Counter) kind() kind                        { return counterKind }
func (c *Counter) collect(f *family, at point)     { f.addWhole(at, int64(c.Value())) }
func (c *Counter) inherit(old source, _ time.Time) { c.n.Store(old.(*Counter).Value()) }

func (*Level) kind() kind                    { return levelKind }
func (l *Level) collect(f *family, at point) { f.addWhole(at, l.Value()) }

func (*Moment) kind() kind { return valueKind }
func (m *Moment) collect(f *family, at point) {
	if age, ok := m.Age(at.now); ok {
		f.addReal(at, age.Seconds())
	}
}

func (*Stopwatch) kind() kind                    { return timeKind }
func (s *Stopwatch) collect(f *family, at point) { f.addReal(at, s.Total(at.now).Seconds()) }
func (s *Stopwatch) inherit(old source, now time.Time) {
	s.word.Store(int64(old.(*Stopwatch).Total(now)))
}

func (*Value) kind() kind { return valueKind }
func (v *Value) collect(f *family, at point) {
	if n, ok := v.Get(); ok {
		f.addReal(at, n)
	}
}

func (*Histogram) kind() kind                    { return histogramKind }
func (h *Histogram) collect(f *family, at point) { f.addHistogram(at, h) }
func (h *Histogram) inherit(old source, _ time.Time) {
	d := old.(*Histogram).Distribution()
	h.sum.Store(int64(d.Sum))
	for i, n := range d.counts {
		h.counts[i].Store(n)
	}
}

// rare is a counter that stays absent while zero, for labels of which most values never occur.
type rare struct{ *Counter }

func (r rare) collect(f *family, at point) {
	if n := r.Value(); n > 0 {
		f.addWhole(at, int64(n))
	}
}
func (r rare) inherit(old source, now time.Time) { r.Counter.inherit(old.(rare).Counter, now) }

// sum shows the total time of a histogram per reader or task, where the histogram itself is merged.
type sum struct{ h *Histogram }

func (sum) kind() kind                    { return timeKind }
func (s sum) collect(f *family, at point) { f.addReal(at, time.Duration(s.h.sum.Load()).Seconds()) }

// oneOf is 1 while the state is the given one.
type oneOf struct {
	state *atomic.Uint32
	is    uint32
}

func (oneOf) kind() kind { return levelKind }
func (o oneOf) collect(f *family, at point) {
	if o.state.Load() == o.is {
		f.addWhole(at, 1)
		return
	}
	f.addWhole(at, 0)
}

// known is a whole number that is absent while zero.
type known struct{ n *atomic.Int64 }

func (known) kind() kind { return levelKind }
func (k known) collect(f *family, at point) {
	if n := k.n.Load(); n != 0 {
		f.addWhole(at, n)
	}
}

// nameOf is the i-th name of an enumeration.
func nameOf(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
