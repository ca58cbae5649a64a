// Package lineage decides in which order the shards of a Kinesis stream may be read. It is a pure core: facts come in as events, what may be
// read comes out.
//
// # Why there is an order
//
// A stream is resharded by closing shards and opening others in their place: a split makes two children of one parent, a merge one child of
// two. Records of one key are in one shard before and in another one after, so they keep their order only when a child is read after its
// parents have been read to their end. And that end has to be durable: if the child's records were visible while the parent's last ones could
// still be taken back by a crash, a restart would deliver them behind the child's.
//
// # Facts and states
//
// A [Topology] holds a node for each shard: its parents, where it is to be read from, and facts, such as listed, closed, started, completed. A
// [State] is derived from facts when somebody asks, so facts may come in any order and twice:
//
//	discovered ──> pending parent ──> active ──> draining ──> completed
//
// A shard is ready when a scan has listed it, its position is concrete, and each parent is completed, or was never listed when the job began.
// Closed shards are drained like any other, not skipped.
//
// # Scans
//
// [Topology.Begin] numbers a scan, [Topology.Apply] takes its complete result, or nothing of it. The first one is the snapshot that the start
// position of the job is applied to; everything found later is new and read from its beginning. An unfinished shard that several scans in a row
// do not list is gone, with what it held: that is a [Error], which is part of the state, or an accepted loss.
//
// # Starts that have to be made concrete
//
// The end of a stream has no name that would mean the same tomorrow. Shards that begin there form a batch ([Topology.Batch]), answered at once
// for all of them ([Topology.Resolve]); meanwhile nothing is ready, whatever happens to the shards of the batch. After that, nothing is ready until
// a completed checkpoint contains the positions ([Topology.Durable]). So a start is evaluated once.
//
// # The end of a shard
//
// [Topology.Ended] is what a reader says: it is worth a checkpoint, and changes nothing else. [Topology.Finished] is what a completed checkpoint
// says: the shard is completed and its children are ready, unless they have another parent.
//
// The state has a versioned format of its own ([Topology.Encode], [Decode]).
package lineage
