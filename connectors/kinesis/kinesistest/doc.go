// Package kinesistest runs a double of Amazon Kinesis Data Streams inside the process: for tests of this repository, of connectors and of any program that reads or
// writes Kinesis with the AWS SDK, and for the command's `dev kinesis`. It needs no account, container or network.
//
//	srv := kinesistest.Start(t, kinesistest.Options{})
//	srv.CreateStream("orders", 2)
//	srv.Put("orders", kinesistest.Record{PartitionKey: "a", Data: []byte("first")})
//	client := srv.Client() // a *kinesis.Client; or give srv.Endpoint() to a program as its endpoint
//
// Elsewhere [New] returns errors instead of failing a test.
//
// # Time
//
// What takes minutes or days at the service depends on the server's [Clock] alone. The usual one runs; one made with [NewClock] stands still. Either is put forward:
//
//	srv.Advance(5 * time.Minute) // iterators expire, subscriptions end
//	srv.Advance(24 * time.Hour)  // records and closed shards are gone
//
// With Options.InMemory the server also runs in a testing/synctest bubble, where the time is the bubble's. A program there ends its own connections: what reads a
// subscription closes it, and Close of the server comes before the bubble's end.
//
// # Resharding
//
// [Server.Split], [Server.Merge] and [Server.Reshard] do what the operations of the same kind do, at once. [Server.Shards] shows the lineage, and [Server.Records] what a
// reader must have delivered in the end.
//
// # Faults
//
// Any request, answer or event can go wrong on purpose:
//
//	hung := srv.Inject(kinesistest.Fault{Operation: "GetRecords", Shard: id, Skip: 3, Effect: kinesistest.Hang()})
//	<-hung.Reached()
//
// There are errors ([Throttle], [Expire], [InternalError], [Fail]), bad connections ([Delay], [Hang], [Reset], [LoseAnswer], [Cut], [Corrupt], [EndStream]), answers that are
// odd but legal ([EmptyPage], [WithholdEnd], [OmitChildren], [StaleList], [ParentsLookOpen]), and ones that are not ([EmptyAnswer], [EndEarly], [OmitShards], [RepeatPage],
// [SkipPage]). [Rewrite] makes any other.
//
// # What it is like
//
// It speaks the JSON protocol, which SDKs for Go use, and the event stream of subscriptions. Sequence numbers have 56 digits, grow along a shard and from a parent to its child, and say which
// shard of which stream they belong to: another one's are refused. Partition keys are placed by their MD5. The limits of the service hold unless Options.Unlimited lifts those on calls and bytes a
// second. What follows where the reference leaves room:
//
//   - The end of a shard comes with its last records; [WithholdEnd] makes it come on a page of its own.
//   - A position that has expired continues at the oldest record kept, without an error.
//   - A stream that is being changed already shows its new shards, and keeps taking records.
//   - A subscription gets an event at once, then when there are records, and every 5 s when there are none. Its bytes a second are not limited.
//   - It speaks HTTP/1.1, where the SDK now and then gives up a connection whose answer is very fast, in the middle of the answer. [Server.HTTPClient] is without that.
//   - Requests are neither authenticated nor checked against regions and accounts. Encryption, tags, metrics, policies and channels are missing.
//
// It was compared with an independent emulator (see conformance/kinesisserver), not with the service itself.
package kinesistest
