// Package telemetry counts what the engine and its connectors do, and shows it: as OpenTelemetry metrics, as a Prometheus
// page, and as a [Progress] for a terminal.
//
// # How it is used
//
// A job run has one [Registry]. Each attempt of a reader takes a fresh [Reader] from it, each epoch of the coordinator a
// fresh [Coordinator], each sink task a fresh [Sink]. These are plain structs of instruments; their fields are documented
// in place, and the owner loop updates them:
//
//	stats := registry.NewReader(3)
//	...
//	stats.Records.Add(uint64(batch.Len()))
//	stats.Poll.Observe(elapsed)
//
// Connectors get an [sdk.Metrics] of their own from [Registry.ReaderMetrics], [Registry.EnumeratorMetrics] and
// [Registry.SinkMetrics].
//
// # What it costs
//
// An update is one atomic add, a histogram two. Nothing is looked up, locked or allocated, and nothing is per record:
// loops update per turn, per command and per checkpoint. All other work happens when somebody collects: the registry is
// an OpenTelemetry metric producer, which reads the structs and builds the data points. Histograms of readers and sink tasks
// are merged per job then, so that 512 readers do not become 100,000 series; counters and levels keep the reader's number,
// which is enough to find the odd one.
//
// # Obligations
//
//  1. A new attempt takes a new struct. It starts from the counts of the one before it, and what an abandoned attempt still
//     writes goes nowhere. The same holds for epochs, sink tasks and connector metrics.
//  2. What is unknown is absent, never zero: [Moment], [Value] and connector gauges have no data point until they are set.
//  3. Labels come from fixed sets and small indexes: job, connector, reader, task, and enumerations of the engine. There are no
//     split ids, command ids, topics, paths, payloads, credentials or error texts. A test scrapes everything and checks it.
//
// docs/en/metrics.md lists every metric; a test keeps it equal to what the code defines.
package telemetry
