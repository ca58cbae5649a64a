package telemetry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Handler serves the metrics of the given registries, and those of the Go runtime and the process, in Prometheus' text
// format. It starts no goroutine and needs no closing.
func Handler(registries ...*Registry) (http.Handler, error) {
	page := prometheus.NewRegistry()
	if err := page.Register(collectors.NewGoCollector()); err != nil {
		return nil, fmt.Errorf("telemetry: metrics of the Go runtime: %w", err)
	}
	if err := page.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return nil, fmt.Errorf("telemetry: metrics of the process: %w", err)
	}
	e, err := exporter.New(
		exporter.WithRegisterer(page),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo(),
		exporter.WithProducer(all(registries)),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus exporter: %w", err)
	}
	// A reader collects only once a provider has it, also when all it exports comes from a producer.
	_ = metric.NewMeterProvider(metric.WithReader(e))
	return promhttp.HandlerFor(page, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}), nil
}

// all joins several registries into one producer.
type all []*Registry

// Produce implements [metric.Producer].
func (a all) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	var list []metricdata.ScopeMetrics
	for _, r := range a {
		scopes, err := r.Produce(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, scopes...)
	}
	return list, nil
}
