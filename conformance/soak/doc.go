// Command soak runs a job for long and shows that nothing grows.
//
// A broker in a process of its own is written to all the time and forgets what is old. A job reads it into files, exactly once and
// split by key, with five checkpoints a second. Every minute the job is stopped with a savepoint and started again in the same process,
// with another parallelism; now and then the broker's process is stopped for two seconds. Whoever takes the files away, as a consumer
// would, counts every record.
//
//	go run ./conformance/soak -for 30m
//
// Heap (after a collection), goroutines, open files, entries of the assignment tracker and the size of the state directory are
// looked at every few seconds. The command fails when the last third of the looks is higher than the first, beyond what noise
// explains, or when a record was lost or came twice.
//
// A test of this package lets a job live a day in virtual time.
package main
