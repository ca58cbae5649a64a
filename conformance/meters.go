package conformance

import (
	"regexp"
	"sort"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
)

// meters is an [sdk.Metrics] that remembers what it was asked for.
type meters struct {
	mu struct {
		sync.Mutex
		instruments map[string]*instrument
		wrong       []string
	}
}

type instrument struct {
	kind, unit, help string
	mu               sync.Mutex
	count            int64
	set              bool
}

var legalName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

func newMeters() *meters {
	m := &meters{}
	m.mu.instruments = map[string]*instrument{}
	return m
}

func (m *meters) Counter(name, unit, help string) sdk.Counter {
	return counter{m.instrument("counter", name, unit, help)}
}

func (m *meters) Gauge(name, unit, help string) sdk.Gauge {
	return gauge{m.instrument("gauge", name, unit, help)}
}

func (m *meters) instrument(kind, name, unit, help string) *instrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.mu.instruments[name]
	switch {
	case i == nil:
		i = &instrument{kind: kind, unit: unit, help: help}
		m.mu.instruments[name] = i
		if !legalName.MatchString(name) {
			m.mu.wrong = append(m.mu.wrong, "the name "+name+" is not of lower case letters, digits and underscores, at most 64")
		}
		if help == "" {
			m.mu.wrong = append(m.mu.wrong, name+" has no help text")
		}
	case i.kind != kind || i.unit != unit:
		m.mu.wrong = append(m.mu.wrong, name+" is asked for as a "+i.kind+" in "+i.unit+" and as a "+kind+" in "+unit)
	}
	return i
}

// names lists the instruments in order.
func (m *meters) names() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.mu.instruments {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (m *meters) problems() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.mu.wrong...)
}

// moved reports whether any counter has counted or gauge was set.
func (m *meters) moved() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.mu.instruments {
		i.mu.Lock()
		moved := i.count > 0 || i.set
		i.mu.Unlock()
		if moved {
			return true
		}
	}
	return false
}

type (
	counter struct{ *instrument }
	gauge   struct{ *instrument }
)

func (c counter) Add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += n
}

func (g gauge) Set(float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set = true
}

func (g gauge) Unset() {}
