package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-dev/penstock/sdk"
)

var updateDocs = flag.Bool("update", false, "rewrite the generated part of docs/en/metrics.md")

const docsFile = "../../docs/en/metrics.md"

// full returns a registry in which every instrument has a value, so that a page of it has every metric.
func full(t *testing.T) *Registry {
	t.Helper()
	r := NewRegistry("orders", Options{})
	r.NewReader(0)
	r.NewSink(0)
	for _, p := range r.parts() {
		for _, in := range p.of.instruments() {
			fill(t, in.source)
		}
	}
	for _, m := range []sdk.Metrics{r.ReaderMetrics("fake", 0), r.EnumeratorMetrics("fake"), r.SinkMetrics("file", 0)} {
		m.Counter("example_calls", "calls", "A counter of a connector.").Add(1)
		m.Gauge("example_level", "records", "A gauge of a connector.").Set(1)
	}
	return r
}

func fill(t *testing.T, s source) {
	t.Helper()
	switch s := s.(type) {
	case *Counter:
		s.Inc()
	case rare:
		s.Inc()
	case *Level:
		s.Set(1)
	case *Moment:
		s.Set(time.Now())
	case *Histogram:
		s.Observe(time.Second)
	case known:
		s.n.Store(1)
	case *Value:
		s.Set(1)
	case *Stopwatch, sum, oneOf:
	default:
		t.Fatalf("the test cannot fill a %T", s)
	}
}

// engineMetrics are the families of a page that the engine makes, without those of connectors and of the Go runtime.
func engineMetrics(page map[string]*dto.MetricFamily) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(page)), func(name string) bool {
		return !strings.HasPrefix(name, "penstock_") || strings.HasPrefix(name, "penstock_connector_")
	})
	return names
}

// TestDocumentationListsEveryMetric keeps docs/en/metrics.md equal to what a page really has. -update rewrites it.
func TestDocumentationListsEveryMetric(t *testing.T) {
	t.Parallel()
	page := scrape(t, full(t))
	var table bytes.Buffer
	for _, section := range []struct{ title, prefix string }{
		{"Job", "penstock_job_"},
		{"Checkpoints", "penstock_checkpoint_"},
		{"Coordinator", "penstock_coordinator_"},
		{"Readers", "penstock_reader_"},
		{"Sinks", "penstock_sink_"},
		{"Process", "penstock_process_"},
		{"Metrics themselves", "penstock_metrics_"},
	} {
		fmt.Fprintf(&table, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", section.title)
		for _, name := range engineMetrics(page) {
			if strings.HasPrefix(name, section.prefix) {
				f := page[name]
				fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), labelsOf(f), f.GetHelp())
				delete(page, name)
			}
		}
	}
	if rest := engineMetrics(page); len(rest) > 0 {
		t.Errorf("no section has %v", rest)
	}
	docs, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
	head, rest, ok := strings.Cut(string(docs), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part", docsFile)
	}
	switch {
	case old == table.String():
	case *updateDocs:
		if err := os.WriteFile(docsFile, []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date: go test ./runtime/telemetry -run Documentation -update", docsFile)
	}
}

// labelsOf lists a family's labels; those with a fixed set of values with all of them.
func labelsOf(f *dto.MetricFamily) string {
	values := map[string][]string{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if !slices.Contains(values[l.GetName()], l.GetValue()) {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := "`" + name + "`"
		if name != "job" && name != "reader" && name != "task" {
			slices.Sort(values[name])
			text += " (" + strings.Join(values[name], ", ") + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// TestLabelsAreBounded scrapes everything and allows only labels whose values are indexes or come from a fixed set: what names a split, a command, a
// path or an error must never become a label.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	index, word := regexp.MustCompile(`^[0-9]+$`), regexp.MustCompile(`^[a-z_]+$`)
	allowed := map[string]func(string) bool{
		"job":       func(v string) bool { return v == "orders" },
		"connector": func(v string) bool { return v == "fake" || v == "file" },
		"reader":    func(v string) bool { return index.MatchString(v) || v == "coordinator" },
		"task":      index.MatchString,
		"status":    word.MatchString, "reason": word.MatchString, "stage": word.MatchString, "state": word.MatchString,
		"scope": word.MatchString, "limit": word.MatchString, "call": word.MatchString,
	}
	const perFamily = 16 // the largest enumeration, with room for its growth
	for name, f := range scrape(t, full(t)) {
		if !strings.HasPrefix(name, "penstock_") {
			continue
		}
		if n := len(f.GetMetric()); n > perFamily {
			t.Errorf("%s has %d series for one reader and one task", name, n)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if ok := allowed[l.GetName()]; ok == nil || !ok(l.GetValue()) {
					t.Errorf("%s has the label %s=%q", name, l.GetName(), l.GetValue())
				}
			}
			if f.GetType() == dto.MetricType_HISTOGRAM && len(m.GetLabel()) > 2 {
				t.Errorf("%s is a histogram per reader or task: %v", name, m.GetLabel())
			}
		}
	}
}

// TestEveryFieldIsCollected finds instruments that somebody added to a struct and forgot to show.
func TestEveryFieldIsCollected(t *testing.T) {
	t.Parallel()
	for _, of := range []interface{ instruments() []instrument }{&Reader{}, &Coordinator{}, &Sink{}, &Job{}} {
		shown := map[uintptr]bool{}
		help := map[string]string{}
		for _, in := range of.instruments() {
			shown[addressOf(in.source)] = true
			if in.help == "" || !strings.HasSuffix(in.help, ".") {
				t.Errorf("%s: help %q", in.name, in.help)
			}
			if known, ok := help[in.name]; ok && known != in.help {
				t.Errorf("%s has two helps: %q, %q", in.name, known, in.help)
			}
			help[in.name] = in.help
		}
		v := reflect.ValueOf(of).Elem()
		for i := range v.NumField() {
			field := v.Field(i)
			if field.Kind() != reflect.Array {
				check(t, v.Type().Field(i).Name, field, shown)
				continue
			}
			for j := range field.Len() {
				// Values that no one uses: protocol numbers start at 1, and an accepted offer has no reason.
				if name := v.Type().Field(i).Name; j > 0 || name != "Admissions" && name != "Refusals" {
					check(t, fmt.Sprintf("%s[%d]", name, j), field.Index(j), shown)
				}
			}
		}
	}
}

func check(t *testing.T, name string, field reflect.Value, shown map[uintptr]bool) {
	t.Helper()
	if !shown[field.Addr().Pointer()] {
		t.Errorf("%s is never collected", name)
	}
}

func addressOf(s source) uintptr {
	switch s := s.(type) {
	case rare:
		return reflect.ValueOf(s.Counter).Pointer()
	case sum:
		return reflect.ValueOf(s.h).Pointer()
	case oneOf:
		return reflect.ValueOf(s.state).Pointer()
	case known:
		return reflect.ValueOf(s.n).Pointer()
	default:
		return reflect.ValueOf(s).Pointer()
	}
}
