package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// Meter computes rates and shares from snapshots, which come in the order of their times. One goroutine uses it.
type Meter struct {
	bounded bool
	before  int64 // records of earlier runs
	took    time.Duration

	samples []sample // of the last seconds, oldest first
}

type sample struct {
	at      time.Time
	records uint64
}

// window is how far back the rate looks: long enough to be calm, short enough to show that something stopped.
const window = 5 * time.Second

// maxSamples bounds the memory of a meter that is asked often.
const maxSamples = 256

// NewMeter returns a meter of a job. bounded says that it ends by itself, so that there is a share done.
func NewMeter(bounded bool) *Meter { return &Meter{bounded: bounded} }

// Restored says how many records the job had committed before this run.
func (m *Meter) Restored(records int64) { m.before = records }

// Checkpointed says how long the newest checkpoint took.
func (m *Meter) Checkpointed(took time.Duration) { m.took = took }

// Status describes the job in one line, without its name:
//
//	1,284,030 records  412,000/s  lag 3.1 M (8 s)  41%  checkpoint 57, 0.4 s ago, 11 ms
//
// What is not known is left out.
func (m *Meter) Status(p telemetry.Progress) string {
	total := m.before + int64(p.Written)
	parts := []string{human.Count(total) + " records", human.Rate(m.rate(p))}
	if lag := lag(p); lag != "" {
		parts = append(parts, lag)
	}
	if m.bounded && p.PendingKnown && total+p.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d%%", 100*total/(total+p.Pending)))
	}
	if p.Blocked > 0 && p.Blocked == p.Readers {
		parts = append(parts, "waiting for the sink")
	}
	switch {
	case p.LastCheckpoint == 0:
		parts = append(parts, "no checkpoint yet")
	case m.took > 0:
		parts = append(parts, fmt.Sprintf("checkpoint %d, %s ago, %s", p.LastCheckpoint, human.Span(p.CheckpointAge), human.Span(m.took)))
	default:
		parts = append(parts, fmt.Sprintf("checkpoint %d, %s ago", p.LastCheckpoint, human.Span(p.CheckpointAge)))
	}
	return strings.Join(parts, "  ")
}

// rate adds a sample and returns records per second over the window.
func (m *Meter) rate(p telemetry.Progress) float64 {
	m.samples = append(m.samples, sample{p.At, p.Written})
	for len(m.samples) > maxSamples || len(m.samples) > 2 && p.At.Sub(m.samples[1].at) >= window {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	span := p.At.Sub(first.at).Seconds()
	if span <= 0 || p.Written < first.records {
		return 0
	}
	return float64(p.Written-first.records) / span
}

func lag(p telemetry.Progress) string {
	switch {
	case p.PendingKnown && p.LagKnown && p.Pending > 0:
		return fmt.Sprintf("lag %s (%s)", human.Short(p.Pending), human.Span(p.Lag))
	case p.PendingKnown:
		return "lag " + human.Short(p.Pending)
	case p.LagKnown:
		return "lag " + human.Span(p.Lag)
	}
	return ""
}
