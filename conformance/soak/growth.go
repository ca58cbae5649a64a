package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// look is one look at everything that must not grow.
type look struct {
	heap, goroutines, files, tracker, state int64
}

// figures of a look, in a fixed order. slack is growth that noise explains.
var figures = []struct {
	name  string
	slack int64
	of    func(look) int64
}{
	{"heap after a collection, KiB", 4 << 10, func(l look) int64 { return l.heap >> 10 }},
	{"goroutines", 20, func(l look) int64 { return l.goroutines }},
	{"open files", 10, func(l look) int64 { return l.files }},
	{"tracker entries", partitions, func(l look) int64 { return l.tracker }},
	{"state directory, KiB", 16, func(l look) int64 { return l.state >> 10 }},
}

// observe takes a look. Open files are known on Linux only.
func observe(ctx context.Context, metrics *telemetry.Registry, state string) (look, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l := look{heap: int64(m.HeapAlloc), goroutines: int64(runtime.NumGoroutine())} //nolint:gosec // far below the limit
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		l.files = int64(len(open))
	}
	err := filepath.WalkDir(state, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			l.state += info.Size()
		}
		return nil // pruned meanwhile
	})
	if err != nil {
		return look{}, err
	}
	l.tracker, err = trackerEntries(ctx, metrics)
	return l, err
}

func trackerEntries(ctx context.Context, metrics *telemetry.Registry) (n int64, err error) {
	scopes, err := metrics.Produce(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range scopes {
		for _, m := range s.Metrics {
			if m.Name != "penstock.coordinator.tracker.entries" {
				continue
			}
			switch g := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range g.DataPoints {
					n += int64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range g.DataPoints {
					n += p.Value
				}
			}
		}
	}
	return n, nil
}

// verdict compares the first third of the looks with the last, by their medians, and prints a table. The error names what grew.
func verdict(looks []look, print func(string, ...any)) error {
	const fewest = 9
	if len(looks) < fewest {
		return fmt.Errorf("%d looks say nothing about growth (at least %d)", len(looks), fewest)
	}
	third := len(looks) / 3
	var grown []string
	print("| figure | first third | last third | highest |")
	print("|---|---|---|---|")
	for _, f := range figures {
		values := make([]int64, len(looks))
		for i, l := range looks {
			values[i] = f.of(l)
		}
		first, last := median(values[:third]), median(values[len(values)-third:])
		print("| %s | %d | %d | %d |", f.name, first, last, slices.Max(values))
		if last > first+first/10+f.slack {
			grown = append(grown, fmt.Sprintf("%s from %d to %d", f.name, first, last))
		}
	}
	if len(grown) > 0 {
		return fmt.Errorf("grown: %v", grown)
	}
	return nil
}

func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
