// Package kinesis reads a stream of Amazon Kinesis Data Streams as a managed source, by polling or with enhanced fan-out.
//
// # Using it
//
// A [Source] is a plain struct. Name the stream, say where to start and, for a bounded job, where to stop, and hand it to an engine:
//
//	source := kinesis.Source{
//		Stream: "orders",
//		Region: "eu-west-1",
//		Start:  kinesis.Latest(),
//	}
//
// [Source.Validate] names every wrong field at once; [Source.Probe] asks the service and says in words why the source cannot work. Credentials
// are those of the AWS SDK's default chain, unless [Source.Credentials] says otherwise.
//
// # What it promises
//
//  1. A start at the latest position becomes a concrete one once, for all shards together, and is in a completed checkpoint before the first record is
//     read. A restart never evaluates it again, so nothing that was written while the job was down is missing.
//  2. Shards are read in the order of their lineage: a child after its parents were read to their end, and after a completed checkpoint contains that. So the
//     order of a key's records survives resharding, also when the process is killed in the middle of it. What is found after the first look
//     at the stream is read from its beginning.
//  3. A position is that of the last record that was emitted; in an aggregated record, of its last part.
//  4. Nothing is skipped silently. Records that expired before they were read, a shard that disappeared, and a stream that was created anew
//     under its name each end the job with an error that names shard, position and remedy, or are dealt with as [Source.OnLost] says, counted and logged.
//  5. The limits of the service are kept over all readers of the process, and what it refuses is tried again without holding up other shards.
//
// # How it is built
//
// Which shard may be read when is decided by package lineage, a pure core. The enumerator ([Source.NewEnumerator]) drives it: it looks at the stream on workers and
// feeds the core with what it finds, with what readers tell, and with completed checkpoints. A reader tells of a shard that ended at once, in an event, and
// the enumerator asks for a checkpoint: children do not wait for the interval.
//
// A reader ([Source.NewReader]) has one fetcher. When it polls, each call is a goroutine of its own, a bounded number at a time; results come back to the
// fetcher's goroutine, which alone knows where each shard stands. With a [Source.Consumer] each shard has a goroutine that holds its subscription. Both hand
// pages over as elements, which the reader loop presents as a view: it touches the last element of a turn, to move the position.
//
// What readers of one stream have in common in a process, they share: the budget of calls and bytes for each shard, because the service counts
// them whoever makes them, and the bytes that are fetched and not emitted.
//
// Package kinesistest is a double of the service for tests.
package kinesis
