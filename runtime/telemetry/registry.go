package telemetry

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-dev/penstock/sdk"
)

// Scope is the OpenTelemetry instrumentation scope of all metrics.
const Scope = "github.com/penstock-dev/penstock"

var _ metric.Producer = (*Registry)(nil)

// Registry holds the instruments of one job run. Its methods may be called from any goroutine; they lock memory only. It is
// a [metric.Producer]: give it to an OpenTelemetry reader of your own, or serve it with [Handler].
type Registry struct {
	name  string
	now   func() time.Time
	start time.Time
	job   *Job

	mu struct {
		sync.Mutex
		coordinator *Coordinator
		readers     map[int]*Reader
		sinks       map[int]*Sink
		connectors  map[scopeKey]*scope
		families    map[string]connectorFamily
		refused     Counter
	}
}

// Options of a [Registry]. The zero value is ready to use.
type Options struct {
	// Now is the wall clock by which ages are told; nil means time.Now.
	Now func() time.Time
}

// NewRegistry returns the registry of a run of the named job.
func NewRegistry(job string, options Options) *Registry {
	r := &Registry{name: job, now: options.Now, job: &Job{}}
	if r.now == nil {
		r.now = time.Now
	}
	r.start = r.now()
	r.mu.coordinator = &Coordinator{}
	r.mu.readers = map[int]*Reader{}
	r.mu.sinks = map[int]*Sink{}
	r.mu.connectors = map[scopeKey]*scope{}
	r.mu.families = map[string]connectorFamily{}
	return r
}

// Job returns the instruments of the run as a whole: the same ones at every call.
func (r *Registry) Job() *Job { return r.job }

// NewReader returns the instruments of a new attempt of reader id. Counts go on from the attempt before; levels, moments
// and what the old attempt still writes do not.
func (r *Registry) NewReader(id sdk.ReaderID) *Reader {
	fresh := &Reader{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.mu.readers[int(id)]; ok {
		inherit(fresh.instruments(), old.instruments(), r.now())
	}
	r.mu.readers[int(id)] = fresh
	return fresh
}

// NewCoordinator returns the instruments of a new coordinator epoch, as [Registry.NewReader] does for a reader.
func (r *Registry) NewCoordinator() *Coordinator {
	fresh := &Coordinator{}
	r.mu.Lock()
	defer r.mu.Unlock()
	inherit(fresh.instruments(), r.mu.coordinator.instruments(), r.now())
	r.mu.coordinator = fresh
	return fresh
}

// NewSink returns the instruments of a new attempt of a sink task, as [Registry.NewReader] does for a reader.
func (r *Registry) NewSink(task int) *Sink {
	fresh := &Sink{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.mu.sinks[task]; ok {
		inherit(fresh.instruments(), old.instruments(), r.now())
	}
	r.mu.sinks[task] = fresh
	return fresh
}

// SetParallelism forgets the instruments of readers and sink tasks that a rescale removed.
func (r *Registry) SetParallelism(readers, sinks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.mu.readers, func(id int, _ *Reader) bool { return id >= readers })
	maps.DeleteFunc(r.mu.sinks, func(task int, _ *Sink) bool { return task >= sinks })
	maps.DeleteFunc(r.mu.connectors, func(key scopeKey, _ *scope) bool {
		return key.role == readerRole && key.index >= readers || key.role == sinkRole && key.index >= sinks
	})
}

// Produce implements [metric.Producer]. It never fails.
func (r *Registry) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	c := collection{job: r.name, start: r.start, now: r.now(), families: map[string]*family{}}
	for _, part := range r.parts() {
		c.add(part.of.instruments(), part.labels...)
	}
	return c.metrics(), nil
}

// part is a stats struct with its labels.
type part struct {
	of     interface{ instruments() []instrument }
	labels []attribute.KeyValue
}

// parts lists everything that is current. Collecting 512 readers takes milliseconds, for which no loop shall wait: under
// the lock only pointers are copied.
func (r *Registry) parts() []part {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []part{{of: r.job}, {of: r.mu.coordinator}}
	for _, id := range slices.Sorted(maps.Keys(r.mu.readers)) {
		list = append(list, part{r.mu.readers[id], []attribute.KeyValue{attribute.String("reader", strconv.Itoa(id))}})
	}
	for _, task := range slices.Sorted(maps.Keys(r.mu.sinks)) {
		list = append(list, part{r.mu.sinks[task], []attribute.KeyValue{attribute.String("task", strconv.Itoa(task))}})
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.mu.connectors), scopeKey.compare) {
		list = append(list, part{r.mu.connectors[key], key.attributes()})
	}
	return append(list, part{of: r})
}

func (r *Registry) instruments() []instrument {
	return []instrument{{
		"penstock.metrics.refused", "{instrument}", "Connector instruments refused for their name or number.", "", "", &r.mu.refused,
	}}
}

// collection is one pass over a registry.
type collection struct {
	job        string
	start, now time.Time
	order      []*family
	families   map[string]*family
}

func (c *collection) add(list []instrument, labels ...attribute.KeyValue) {
	for i := range list {
		in := &list[i]
		f := c.families[in.name]
		if f == nil {
			f = &family{name: in.name, unit: in.unit, help: in.help, kind: in.source.kind()}
			c.families[in.name] = f
			c.order = append(c.order, f)
		}
		common := []attribute.KeyValue{attribute.String("job", c.job)}
		if in.label != "" {
			common = append(common, attribute.String(in.label, in.value))
		}
		at := point{value: in.value, start: c.start, now: c.now}
		if f.kind == histogramKind {
			at.merged = attribute.NewSet(common...)
		} else {
			at.attributes = attribute.NewSet(append(common, labels...)...)
		}
		in.source.collect(f, at)
	}
}

func (c *collection) metrics() []metricdata.ScopeMetrics {
	scope := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: Scope}}
	for _, f := range c.order {
		if m, ok := f.metric(c.start, c.now); ok {
			scope.Metrics = append(scope.Metrics, m)
		}
	}
	return []metricdata.ScopeMetrics{scope}
}
