package sdk

// Metrics makes the instruments of a connector. Names are lower case with underscores, without prefix; the engine adds
// its own prefix and the labels job, connector and reader. There are no other labels, so cardinality is bounded. Asking twice
// for a name returns the same instrument. Methods may be called from any goroutine.
type Metrics interface {
	// Counter returns a counter that only grows.
	Counter(name, unit, help string) Counter
	// Gauge returns a gauge that is absent until it is set.
	Gauge(name, unit, help string) Gauge
}

// Counter only grows. Safe for concurrent use.
type Counter interface {
	Add(n int64)
}

// Gauge holds the latest value. Safe for concurrent use.
type Gauge interface {
	Set(v float64)
	// Unset makes the gauge absent: unknown is never reported as zero.
	Unset()
}

// Names with a meaning to the engine, which shows them as progress.
const (
	// GaugePendingRecords is how many records are known to be left to read, per reader; absent when unknown.
	GaugePendingRecords = "pending_records"
	// GaugeLagSeconds is the age of the newest emitted record's event time, per reader; absent when unknown.
	GaugeLagSeconds = "lag_seconds"
)

// DiscardMetrics is a [Metrics] that keeps nothing.
var DiscardMetrics Metrics = discardMetrics{}

type (
	discardMetrics    struct{}
	discardInstrument struct{}
)

func (discardMetrics) Counter(_, _, _ string) Counter { return discardInstrument{} }
func (discardMetrics) Gauge(_, _, _ string) Gauge     { return discardInstrument{} }
func (discardInstrument) Add(int64)                   {}
func (discardInstrument) Set(float64)                 {}
func (discardInstrument) Unset()                      {}
