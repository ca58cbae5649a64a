package telemetry

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/penstock-dev/penstock/sdk"
)

// MaxConnectorMetrics is how many different names the connectors of a job may use together. Further ones are refused: the
// connector gets an instrument that keeps nothing, and penstock_metrics_refused_total counts it.
const MaxConnectorMetrics = 256

// connectorPrefix keeps names that connectors choose apart from the engine's own.
const connectorPrefix = "penstock.connector."

// connectorName is what [sdk.Metrics] allows as a name.
var connectorName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// connectorFamily is what the first use of a name fixed for all later ones.
type connectorFamily struct {
	kind       kind
	unit, help string
}

type role uint8

const (
	readerRole role = iota
	enumeratorRole
	sinkRole
)

// scopeKey says whose instruments a scope holds.
type scopeKey struct {
	connector string
	role      role
	index     int
}

func (k scopeKey) compare(other scopeKey) int {
	return cmp.Or(cmp.Compare(k.role, other.role), cmp.Compare(k.connector, other.connector), cmp.Compare(k.index, other.index))
}

func (k scopeKey) attributes() []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("connector", k.connector)}
	switch k.role {
	case readerRole:
		list = append(list, attribute.String("reader", strconv.Itoa(k.index)))
	case enumeratorRole:
		list = append(list, attribute.String("reader", "coordinator"))
	case sinkRole:
		list = append(list, attribute.String("task", strconv.Itoa(k.index)))
	}
	return list
}

// ReaderMetrics returns the [sdk.Metrics] of a new attempt of a source's reader. Counters go on from the attempt before,
// gauges are absent until set again, and what the old attempt still writes goes nowhere. All connector metrics begin with
// penstock_connector_.
func (r *Registry) ReaderMetrics(connector string, id sdk.ReaderID) sdk.Metrics {
	return r.newScope(scopeKey{connector, readerRole, int(id)})
}

// EnumeratorMetrics is [Registry.ReaderMetrics] for a new epoch of the enumerator. The label reader is "coordinator".
func (r *Registry) EnumeratorMetrics(connector string) sdk.Metrics {
	return r.newScope(scopeKey{connector, enumeratorRole, 0})
}

// SinkMetrics is [Registry.ReaderMetrics] for a new attempt of a sink task. The label is task in place of reader.
func (r *Registry) SinkMetrics(connector string, task int) sdk.Metrics {
	return r.newScope(scopeKey{connector, sinkRole, task})
}

func (r *Registry) newScope(key scopeKey) *scope {
	fresh := &scope{registry: r, entries: map[string]*connectorInstrument{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.mu.connectors[key]; old != nil {
		fresh.carry(old)
	}
	r.mu.connectors[key] = fresh
	return fresh
}

// admit decides whether a connector may use a name as that kind, and returns what the name's first use fixed.
func (r *Registry) admit(name string, k kind, unit, help string) (connectorFamily, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	family, used := r.mu.families[name]
	valid := connectorName.MatchString(name) && !strings.HasSuffix(name, "_total")
	if !valid || used && family.kind != k || !used && len(r.mu.families) >= MaxConnectorMetrics {
		r.mu.refused.Inc()
		return connectorFamily{}, false
	}
	if !used {
		family = connectorFamily{k, unit, help}
		r.mu.families[name] = family
	}
	return family, true
}

// scope is the [sdk.Metrics] of one attempt. Lock order: the registry before the scope.
type scope struct {
	registry *Registry

	mu      sync.Mutex
	order   []string                        // guarded by mu
	entries map[string]*connectorInstrument // guarded by mu; what is in it is atomic or never changes
}

// connectorInstrument is a counter or a gauge, as its family says; the other field stays unused.
type connectorInstrument struct {
	family  connectorFamily
	counter Counter
	gauge   Value
}

// carry takes the counters of the attempt before. Gauges stay behind.
func (s *scope) carry(old *scope) {
	old.mu.Lock()
	defer old.mu.Unlock()
	for _, name := range old.order {
		if e := old.entries[name]; e.family.kind == counterKind {
			s.entry(name, e.family).counter.Add(e.counter.Value())
		}
	}
}

// entry finds or makes an instrument. The caller holds mu, or the scope is not yet shared.
func (s *scope) entry(name string, family connectorFamily) *connectorInstrument {
	e := s.entries[name]
	if e == nil {
		e = &connectorInstrument{family: family}
		s.entries[name] = e
		s.order = append(s.order, name)
	}
	return e
}

// Counter implements [sdk.Metrics].
func (s *scope) Counter(name, unit, help string) sdk.Counter {
	family, ok := s.registry.admit(name, counterKind, unit, help)
	if !ok {
		return sdk.DiscardMetrics.Counter(name, unit, help)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return connectorCounter{&s.entry(name, family).counter}
}

// Gauge implements [sdk.Metrics].
func (s *scope) Gauge(name, unit, help string) sdk.Gauge {
	family, ok := s.registry.admit(name, valueKind, unit, help)
	if !ok {
		return sdk.DiscardMetrics.Gauge(name, unit, help)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.entry(name, family).gauge
}

// gauge is the value of a gauge, if the scope has it and it is set.
func (s *scope) gauge(name string) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil {
		return e.gauge.Get()
	}
	return 0, false
}

func (s *scope) instruments() []instrument {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]instrument, 0, len(s.order))
	for _, name := range s.order {
		e := s.entries[name]
		in := instrument{name: connectorPrefix + name, unit: annotation(e.family.unit), help: e.family.help, source: &e.gauge}
		if e.family.kind == counterKind {
			in.source = &e.counter
		}
		list = append(list, in)
	}
	return list
}

// annotation makes a connector's unit an OpenTelemetry annotation, which never becomes part of a Prometheus name: there the
// name is exactly what the author wrote.
func annotation(unit string) string {
	if unit == "" {
		return ""
	}
	return "{" + strings.Trim(unit, "{}") + "}"
}

// connectorCounter ignores what would make a counter shrink.
type connectorCounter struct{ c *Counter }

func (c connectorCounter) Add(n int64) {
	if n > 0 {
		c.c.Add(uint64(n))
	}
}
