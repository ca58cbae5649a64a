// Command crash kills the penstock command at random moments and proves that its committed output is exactly once.
//
// It starts an embedded broker in a process of its own, writes a topic in transactions of which a quarter is aborted, and
// lets the command ingest it into files. It kills the command with SIGKILL, again and again, starts it anew, and at the
// end checks every committed file: each committed record once, none of an aborted transaction, in offset order per
// partition within each file.
//
//	go run ./conformance/crash -kills 50                       the full form, as `make crash` runs it
//	go run ./conformance/crash -kills 50 -rescale              with another parallelism after each kill
//	go run ./conformance/crash -kills 50 -sink kafka           into another topic, read as a consumer of committed records does
//	go run ./conformance/crash -brokers 127.0.0.1:9092         against a broker of yours
//	go run ./conformance/crash -source kinesis -kills 10       a stream that is resharded 2 -> 4 -> 2 -> 8 meanwhile
//
// With a stream the order of each key's records is checked too, across shards, along the order of the checkpoints that committed them.
//
// A failing run prints the seed that repeats its schedule of kills, and leaves its folder behind.
package main
