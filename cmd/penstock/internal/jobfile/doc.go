// Package jobfile reads job files: YAML documents that say what a job reads, where it writes, and how it runs.
//
//	job: orders
//	parallelism: 2
//	source: {kafka: {brokers: ["127.0.0.1:9092"], topics: [orders]}}
//	sink: {file: {path: ./out}}
//	checkpoint: {dir: ./state}
//
// [Load] returns a [File] with an engine job, or option.Problems with everything that is wrong. The options themselves are
// described where they belong: those of connectors in package catalog, those of the runtime section in package engine.
package jobfile
