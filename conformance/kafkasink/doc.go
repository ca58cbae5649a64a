// Package kafkasink proves, through the whole engine, that what the kafka sink commits is exactly once: jobs whose source, writers and cluster
// fail are run to their end, also in several runs with other numbers of tasks, and the output topic is read as a consumer of committed
// records reads it. It holds tests only; they run against the embedded broker and against a real one.
package kafkasink
