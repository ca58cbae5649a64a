// Package blackhole is a sink that keeps nothing: it counts records and bytes, and can check their order. It is for measuring a
// source and for tests.
//
// [Sink.Totals] answers what all writers of a sink have seen in this process; the metrics records and bytes say the same
// per task. Counting is at least once: what is read again after a restart is counted again.
package blackhole
