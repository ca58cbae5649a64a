// Package jsonl writes and reads records as JSON lines: one object a line, the format that the file and stdout sinks share.
//
// The lines of one source hold the same members in the same order, so that they can be read by eye, cut by tools and loaded with one
// schema. Those of a system whose parts have numbers:
//
//	{"topic":"orders","partition":3,"offset":17,"timestamp":"2026-01-02T03:04:05.006Z","key":"k","value":"v","headers":[]}
//
// and those of a system whose parts have names, which is what a Partition of -1 says:
//
//		{"stream":"orders","shard":"shardId-000000000003","sequence":"4959","subsequence":0,"timestamp":"2026-01-02T03:04:05.006Z","key":"k","value":"v"}
//
//	  - topic, partition and offset are the record's place in its system. A record with a Sequence has
//	    "sequence" behind offset.
//	  - stream, shard, sequence and subsequence are the record's Topic, Split, Sequence and Offset.
//	  - timestamp is RFC 3339 in UTC with milliseconds, null when the system has none.
//	  - key and value are text when they are valid UTF-8. Other bytes stand as base64 (RFC 4648, padded), followed by
//	    "key_encoding":"base64" or "value_encoding":"base64". A null key or value is null, an empty one is "".
//	  - headers is a list of {"key":...,"value":...} in the record's order, repeated names kept. When there are none it
//	    is [], and left out beside a shard.
//	    Null and binary header values, and header keys that are no UTF-8, follow the same rules.
//
// [Encoder] appends such lines without allocating; [Decode] reads one back.
package jsonl
