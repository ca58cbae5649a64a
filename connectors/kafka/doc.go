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
//     or created anew under its name each end the reader with an error that names the partition, the offset and a remedy.
//  5. Record keys, values and header values tell null from empty; headers keep their order and repeated names.
//
// # How it is built
//
// Discovery ([Source.NewEnumerator]) opens a client per round, asks for fresh metadata and offsets with raw requests, and
// closes it again: no cached answer, no idle connection. One round yields [Split] values, which [Codec] stores.
//
// A reader ([Source.NewReader]) has one client and one fetcher. The fetcher polls the client, looks at errors before it
// looks at records, cuts at the stop offset and hands each partition's records over as they are. The reader loop presents
// them as a view: it touches only the last record of a turn, to advance the position; what a record consists of is
// looked at on the sink's side. So the engine's share of the cost per record is a few nanoseconds.
//
// Memory is bounded by the fetch settings: each broker may have one fetch of [Source.FetchMaxBytes] in the client, one
// poll in the hands of the fetcher, the hand-over queue and the one being emitted, times the compression ratio.
package kafka
