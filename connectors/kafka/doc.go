// Package kafka reads Apache Kafka topics as a managed source, on direct partitions and without a consumer group.
//
// # Using it
//
// A [Source] is a plain struct. Name the brokers and the topics (or a pattern), say where to start and, for a bounded
// job, where to stop, and hand it to an engine:
//
//	source := kafka.Source{
//		Brokers: []string{"127.0.0.1:9092"},
//		Topics:  []string{"orders"},
//		Start:   kafka.Earliest(),
//		Stop:    kafka.Latest(), // leave it out to read for ever
//	}
//
// [Source.Validate] names every wrong field at once; [Source.Probe] asks the cluster and says in words why the source
// cannot work: the client underneath retries for ever and says nothing.
//
// # What it promises
//
//  1. A symbolic position (earliest, latest, a time) becomes an offset once, in the first discovery, and that offset is
//     in a completed checkpoint before the first record is fetched. A restart never evaluates it again, so Start is
//     ignored when there is saved state.
//  2. Partitions and topics found after the first recorded discovery are read from their first record, also when the
//     first discovery found nothing: what appeared later is new data.
//  3. A bounded job ends by itself, also when only transaction markers or compacted gaps are left before the stop.
//  4. Nothing is skipped silently. An offset that the log no longer holds, a truncated log, and a topic that was deleted
//     or created anew under its name each end the job with an error that names the partition, the offset and a remedy, or are
//     dealt with as a [Policy] says, counted and logged.
//  5. Record keys, values and header values tell null from empty; headers keep their order and repeated names.
//
// # How it is built
//
// Discovery ([Source.NewEnumerator]) opens a client per round, asks for fresh metadata and offsets with raw requests, and
// closes it again: no cached answer, no idle connection. One round yields [Split] values, which [Codec] stores.
//
// A reader ([Source.NewReader]) has one client and one fetcher. Before the client gets a partition the fetcher checks that its topic is
// the one that was meant and that its log holds the position; a partition that a broker refuses goes back through the same check while
// others are read. A position that a policy moves travels to the reader loop in its place between records, so that
// the next snapshot has it. The fetcher polls the client, looks at errors before it
// looks at records, cuts at the stop offset and hands each partition's records over as they are. The reader loop presents
// them as a view: it touches only the last record of a turn, to advance the position; what a record consists of is
// looked at on the sink's side. So the engine's share of the cost per record is a few nanoseconds.
//
// With [Source.CommitGroup] a goroutine beside the reader commits the positions of completed checkpoints, one commit at a time.
//
// Whatever is wrong on the way to a broker has one of a few names ([Trouble]), in errors at the start ([ConnectionError]) and in the log and
// the gauges of a running job.
//
// Memory is bounded by the fetch settings: each broker may have one fetch of [Source.FetchMaxBytes] in the client, one
// poll in the hands of the fetcher, the hand-over queue and the one being emitted, times the compression ratio.
package kafka
