// Package jsonl writes and reads records as JSON lines: one object a line, the format that the file and stdout sinks share.
//
// A line always holds the same members in the same order, so that it can be read by eye, cut by tools and loaded with one
// schema:
//
//		{"topic":"orders","partition":3,"offset":17,"timestamp":"2026-01-02T03:04:05.006Z","key":"k","value":"v","headers":[]}
//
//	  - topic, partition and offset are the record's place in its system. A system whose positions are not numbers adds
//	    "sequence" behind offset.
//	  - timestamp is RFC 3339 in UTC with milliseconds, null when the system has none.
//	  - key and value are text when they are valid UTF-8. Other bytes stand as base64 (RFC 4648, padded), followed by
//	    "key_encoding":"base64" or "value_encoding":"base64". A null key or value is null, an empty one is "".
//	  - headers is a list of {"key":...,"value":...} in the record's order, repeated names kept, [] when there are none.
//	    Null and binary header values, and header keys that are no UTF-8, follow the same rules.
//
// [Encoder] appends such lines without allocating; [Decode] reads one back.
package jsonl
