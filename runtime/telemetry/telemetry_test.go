package telemetry

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// clock is a hand-driven wall clock.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// scrape serves the registries once and parses the page.
func scrape(t *testing.T, registries ...*Registry) map[string]*dto.MetricFamily {
	t.Helper()
	h, err := Handler(registries...)
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(rec.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// find returns the value of the one sample with these labels, as "name value" pairs.
func find(families map[string]*dto.MetricFamily, name string, labels ...string) (float64, bool) {
	f := families[name]
	if f == nil {
		return 0, false
	}
	for _, m := range f.GetMetric() {
		if !matches(m, labels) {
			continue
		}
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			return m.GetCounter().GetValue(), true
		case dto.MetricType_GAUGE:
			return m.GetGauge().GetValue(), true
		case dto.MetricType_HISTOGRAM:
			return float64(m.GetHistogram().GetSampleCount()), true
		case dto.MetricType_SUMMARY, dto.MetricType_UNTYPED, dto.MetricType_GAUGE_HISTOGRAM:
			return math.NaN(), true
		}
	}
	return 0, false
}

func matches(m *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, l := range m.GetLabel() {
		have[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

func want(t *testing.T, families map[string]*dto.MetricFamily, value float64, name string, labels ...string) {
	t.Helper()
	got, ok := find(families, name, labels...)
	if !ok || got != value {
		t.Errorf("%s%v is %v (present: %t), want %v", name, labels, got, ok, value)
	}
}

func absent(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) {
	t.Helper()
	if got, ok := find(families, name, labels...); ok {
		t.Errorf("%s%v is %v, want it absent", name, labels, got)
	}
}

func TestReaderIsShown(t *testing.T) {
	t.Parallel()
	clk := newClock()
	r := NewRegistry("orders", Options{Now: clk.Now})
	s := r.NewReader(3)
	s.Records.Add(64)
	s.Turned(sdk.MoreAvailable)
	s.Poll.Observe(3 * time.Millisecond)
	s.Admitted(protocol.Accepted, protocol.ReasonNone)
	s.Admitted(protocol.RetryLater, protocol.ReasonMailboxBytes)
	s.OldestCommand.Set(clk.Now())
	s.OutputBlocked.Start(clk.Now())
	s.Stages[StageSnapshot].Observe(time.Second)
	clk.Advance(2 * time.Second)

	page := scrape(t, r)
	want(t, page, 64, "penstock_reader_records_total", "job", "orders", "reader", "3")
	want(t, page, 1, "penstock_reader_turns_total", "reader", "3", "status", "more_available")
	want(t, page, 0, "penstock_reader_turns_total", "reader", "3", "status", "end_of_input")
	want(t, page, 1, "penstock_reader_poll_duration_seconds", "job", "orders")
	want(t, page, 0.003, "penstock_reader_poll_time_seconds_total", "reader", "3")
	want(t, page, 1, "penstock_reader_admissions_total", "status", "accepted")
	want(t, page, 1, "penstock_reader_admission_refusals_total", "reason", "mailbox_bytes")
	absent(t, page, "penstock_reader_admission_refusals_total", "reason", "checksum")
	want(t, page, 2, "penstock_reader_mailbox_oldest_age_seconds")
	want(t, page, 2, "penstock_reader_output_blocked_seconds_total")
	want(t, page, 1, "penstock_reader_checkpoint_duration_seconds", "stage", "snapshot")
	absent(t, page, "penstock_reader_turn_age_seconds")

	s.OldestCommand.Clear()
	s.OutputBlocked.Stop(clk.Now())
	clk.Advance(time.Second)
	page = scrape(t, r)
	absent(t, page, "penstock_reader_mailbox_oldest_age_seconds")
	want(t, page, 2, "penstock_reader_output_blocked_seconds_total")
}

// TestAbandonedAttemptChangesNothing: counts go on over attempts, levels begin anew, and the old attempt is not heard.
func TestAbandonedAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	clk := newClock()
	r := NewRegistry("orders", Options{Now: clk.Now})
	old := r.NewReader(0)
	old.Records.Add(10)
	old.Splits.Set(4)
	old.Poll.Observe(time.Millisecond)
	old.Admitted(protocol.RetryLater, protocol.ReasonMailboxCount)
	old.OutputBlocked.Start(clk.Now())
	old.Turn.Set(clk.Now())
	clk.Advance(time.Second)
	oldMetrics := r.ReaderMetrics("kafka", 0)
	oldCounter := oldMetrics.Counter("fetches", "fetches", "Fetches.")
	oldCounter.Add(7)
	oldGauge := oldMetrics.Gauge(sdk.GaugePendingRecords, "records", "Left to read.")
	oldGauge.Set(100)

	fresh := r.NewReader(0)
	metrics := r.ReaderMetrics("kafka", 0)
	old.Records.Add(1000)
	old.Splits.Set(9)
	oldCounter.Add(1000)
	oldGauge.Set(1000)
	oldMetrics.Counter("late", "", "Made after the end.").Add(1)
	fresh.Records.Add(1)
	metrics.Counter("fetches", "fetches", "Fetches.").Add(1)
	clk.Advance(time.Second)

	page := scrape(t, r)
	want(t, page, 11, "penstock_reader_records_total")
	want(t, page, 0, "penstock_reader_splits")
	want(t, page, 1, "penstock_reader_poll_duration_seconds")
	want(t, page, 1, "penstock_reader_admission_refusals_total", "reason", "mailbox_count")
	want(t, page, 1, "penstock_reader_output_blocked_seconds_total")
	absent(t, page, "penstock_reader_turn_age_seconds")
	want(t, page, 8, "penstock_connector_fetches_total", "connector", "kafka", "reader", "0")
	absent(t, page, "penstock_connector_pending_records")
	absent(t, page, "penstock_connector_late_total")
}

func TestCoordinatorAndSinkGoOn(t *testing.T) {
	t.Parallel()
	r := NewRegistry("orders", Options{})
	c := r.NewCoordinator()
	c.Registrations.Add(2)
	c.Assignments[Applied].Set(5)
	c = r.NewCoordinator()
	c.Registrations.Inc()
	s := r.NewSink(1)
	s.Commit.Observe(time.Second)
	s = r.NewSink(1)
	s.Commit.Observe(time.Second)
	page := scrape(t, r)
	want(t, page, 3, "penstock_coordinator_registrations_total")
	want(t, page, 0, "penstock_coordinator_assignments", "state", "applied")
	want(t, page, 2, "penstock_sink_call_duration_seconds", "call", "commit")
}

func TestJobState(t *testing.T) {
	t.Parallel()
	clk := newClock()
	r := NewRegistry("orders", Options{Now: clk.Now})
	page := scrape(t, r)
	want(t, page, 1, "penstock_job_state", "state", "created")
	absent(t, page, "penstock_checkpoint_last_age_seconds")
	absent(t, page, "penstock_checkpoint_last_id")

	j := r.Job()
	j.SetState(Running)
	j.SetSchemaState(SchemaQuiescing)
	j.Restarts[RestartReader].Inc()
	j.Aborted[AbortSink].Inc()
	j.CheckpointCompleted(12, clk.Now(), 300*time.Millisecond, 4096)
	clk.Advance(5 * time.Second)
	page = scrape(t, r)
	want(t, page, 0, "penstock_job_state", "state", "created")
	want(t, page, 1, "penstock_job_state", "state", "running")
	want(t, page, 1, "penstock_job_schema_state", "state", "quiescing")
	want(t, page, 12, "penstock_checkpoint_last_id")
	want(t, page, 5, "penstock_checkpoint_last_age_seconds")
	want(t, page, 4096, "penstock_checkpoint_last_size_bytes")

	p := r.Snapshot()
	if p.State != Running || p.LastCheckpoint != 12 || p.CheckpointAge != 5*time.Second || p.Restarts != 1 || p.CheckpointsAborted != 1 {
		t.Errorf("progress is %+v", p)
	}
}

// TestConnectorGaugeIsAbsentUntilKnown: unknown is never zero, in the page and in the progress alike.
func TestConnectorGaugeIsAbsentUntilKnown(t *testing.T) {
	t.Parallel()
	r := NewRegistry("orders", Options{})
	r.NewReader(0)
	r.NewReader(1)
	gauges := []sdk.Gauge{
		r.ReaderMetrics("kafka", 0).Gauge(sdk.GaugePendingRecords, "records", "Left to read."),
		r.ReaderMetrics("kafka", 1).Gauge(sdk.GaugePendingRecords, "records", "Left to read."),
	}
	absent(t, scrape(t, r), "penstock_connector_pending_records")
	gauges[0].Set(0)
	want(t, scrape(t, r), 0, "penstock_connector_pending_records", "reader", "0")
	absent(t, scrape(t, r), "penstock_connector_pending_records", "reader", "1")
	if p := r.Snapshot(); p.PendingKnown {
		t.Errorf("pending is %d although reader 1 does not know its part", p.Pending)
	}
	gauges[1].Set(41)
	if p := r.Snapshot(); !p.PendingKnown || p.Pending != 41 {
		t.Errorf("progress is %+v, want 41 pending", p)
	}
	gauges[0].Unset()
	gauges[1].Set(math.NaN())
	absent(t, scrape(t, r), "penstock_connector_pending_records")
	if p := r.Snapshot(); p.PendingKnown {
		t.Error("pending is known after both readers forgot it")
	}
}

func TestConnectorNamesAreBounded(t *testing.T) {
	t.Parallel()
	r := NewRegistry("orders", Options{})
	m := r.ReaderMetrics("kafka", 0)
	first := m.Counter("fetches", "", "Fetches.")
	first.Add(1)
	m.Counter("fetches", "", "Another help.").Add(1)
	first.Add(-5) // a counter only grows
	refusals := 0
	for _, name := range []string{"", "Upper", "with space", "9lives", "topic{x}", strings.Repeat("x", 65), "sum_total"} {
		m.Counter(name, "", "").Add(1)
		m.Gauge(name, "", "").Set(1)
		refusals += 2
	}
	m.Gauge("fetches", "", "A counter by that name exists.").Set(1)
	refusals++
	page := scrape(t, r)
	want(t, page, 2, "penstock_connector_fetches_total")
	want(t, page, float64(refusals), "penstock_metrics_refused_total")

	for i := range 2 * MaxConnectorMetrics {
		m.Gauge("g"+strings.Repeat("x", i%60)+"_"+string(rune('a'+i/60)), "", "").Set(1)
	}
	count := 0
	for name := range scrape(t, r) {
		if strings.HasPrefix(name, "penstock_connector_") {
			count++
		}
	}
	if count != MaxConnectorMetrics {
		t.Errorf("%d connector metrics, want the bound %d", count, MaxConnectorMetrics)
	}
}

func TestRescaleForgetsReaders(t *testing.T) {
	t.Parallel()
	r := NewRegistry("orders", Options{})
	for id := range 4 {
		r.NewReader(sdk.ReaderID(id)).Records.Add(1)
		r.ReaderMetrics("kafka", sdk.ReaderID(id)).Counter("fetches", "", "").Add(1)
		r.NewSink(id).Records.Add(1)
	}
	r.SetParallelism(2, 1)
	page := scrape(t, r)
	for name, n := range map[string]int{
		"penstock_reader_records_total": 2, "penstock_connector_fetches_total": 2, "penstock_sink_records_total": 1,
	} {
		if got := len(page[name].GetMetric()); got != n {
			t.Errorf("%s has %d series, want %d", name, got, n)
		}
	}
}

// TestSeveralJobsShareAPage: one process, one page, no collision.
func TestSeveralJobsShareAPage(t *testing.T) {
	t.Parallel()
	a, b := NewRegistry("a", Options{}), NewRegistry("b", Options{})
	a.NewReader(0).Records.Add(1)
	b.NewReader(0).Records.Add(2)
	page := scrape(t, a, b)
	want(t, page, 1, "penstock_reader_records_total", "job", "a")
	want(t, page, 2, "penstock_reader_records_total", "job", "b")
}

func TestHistogramBuckets(t *testing.T) {
	t.Parallel()
	limits := bounds()
	for _, d := range []time.Duration{
		-1, 0, 1, time.Microsecond, time.Microsecond + 1, 2 * time.Microsecond, 2*time.Microsecond + 1, 4 * time.Microsecond,
		time.Millisecond, time.Second, 67 * time.Second, time.Microsecond << 26, time.Microsecond<<26 + 1, time.Hour, math.MaxInt64,
	} {
		var h Histogram
		h.Observe(d)
		dist := h.Distribution()
		for i, n := range dist.counts {
			inside := (i == len(limits) || d.Seconds() <= limits[i]) && (i == 0 || d.Seconds() > limits[i-1])
			if (n == 1) != inside {
				t.Errorf("%v: bucket %d holds %d", d, i, n)
			}
		}
	}
	var h Histogram
	for range 99 {
		h.Observe(3 * time.Microsecond)
	}
	h.Observe(time.Second)
	dist := h.Distribution()
	if p50, p99, p100 := dist.Quantile(0.5), dist.Quantile(0.99), dist.Quantile(1); p50 != 4*time.Microsecond || p99 != p50 || p100 < time.Second || p100 > 2*time.Second {
		t.Errorf("quantiles %v %v %v", p50, p99, p100)
	}
	if dist.Count() != 100 {
		t.Errorf("count %d", dist.Count())
	}
	var empty Distribution
	if empty.Quantile(0.5) != 0 {
		t.Error("an empty distribution has a median")
	}
}

func TestValueKeepsEveryNumber(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)} {
		var v Value
		if _, ok := v.Get(); ok {
			t.Fatal("the zero value is known")
		}
		v.Set(f)
		if got, ok := v.Get(); !ok || math.Float64bits(got) != math.Float64bits(f) {
			t.Errorf("stored %v, got %v (known: %t)", f, got, ok)
		}
		v.Unset()
		if _, ok := v.Get(); ok {
			t.Errorf("%v is still known after Unset", f)
		}
	}
}

func TestStopwatch(t *testing.T) {
	t.Parallel()
	var s Stopwatch
	t0 := newClock().Now()
	s.Stop(t0)
	s.Start(t0)
	s.Start(t0.Add(time.Second)) // already running
	if got := s.Total(t0.Add(3 * time.Second)); got != 3*time.Second || !s.Running() {
		t.Errorf("running total %v", got)
	}
	s.Stop(t0.Add(4 * time.Second))
	s.Stop(t0.Add(9 * time.Second))
	s.Start(t0.Add(10 * time.Second))
	s.Stop(t0.Add(9 * time.Second)) // the clock was set back: the spell counts nothing, the rest stays
	if got := s.Total(t0); got < 3*time.Second || got > 4*time.Second || s.Running() {
		t.Errorf("total %v after a clock set back", got)
	}
}

// TestConcurrentUse lets the race detector watch updates, new attempts and collection.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	r := NewRegistry("orders", Options{})
	var wg sync.WaitGroup
	for id := range 4 {
		wg.Go(func() {
			for range 50 {
				s := r.NewReader(sdk.ReaderID(id))
				m := r.ReaderMetrics("kafka", sdk.ReaderID(id))
				s.Records.Add(1)
				s.OutputBlocked.Start(time.Now())
				m.Counter("fetches", "", "").Add(1)
				m.Gauge(sdk.GaugeLagSeconds, "s", "").Set(1)
				s.OutputBlocked.Stop(time.Now())
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if _, err := r.Produce(t.Context()); err != nil {
				t.Error(err)
			}
			r.Snapshot()
		}
	})
	wg.Wait()
	page := scrape(t, r)
	for id := range 4 {
		want(t, page, 50, "penstock_reader_records_total", "reader", string(rune('0'+id)))
		want(t, page, 50, "penstock_connector_fetches_total", "reader", string(rune('0'+id)))
	}
}

// TestUpdatesDoNotAllocate keeps the loops' share of the cost at a few atomic adds.
func TestUpdatesDoNotAllocate(t *testing.T) {
	s := NewRegistry("orders", Options{}).NewReader(0)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		s.Records.Add(64)
		s.Bytes.Add(6400)
		s.Poll.Observe(time.Millisecond)
		s.Turned(sdk.MoreAvailable)
		s.Turn.Set(now)
		s.Turn.Clear()
		s.OutputBlocked.Start(now)
		s.OutputBlocked.Stop(now)
	}); n != 0 {
		t.Errorf("a turn's updates allocate %v times", n)
	}
}

func BenchmarkTurn(b *testing.B) {
	s := NewRegistry("orders", Options{}).NewReader(0)
	b.ReportAllocs()
	for b.Loop() {
		s.Records.Add(64)
		s.Bytes.Add(6400)
		s.Poll.Observe(time.Millisecond)
		s.Turned(sdk.MoreAvailable)
	}
}

func BenchmarkProduce512(b *testing.B) {
	r := NewRegistry("orders", Options{})
	for id := range 512 {
		r.NewReader(sdk.ReaderID(id))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Produce(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
