// Package tail is a connector for a system that sends by itself: a small publish and subscribe server, spoken to in lines over TCP. It shows how a
// source that is pushed to fits [base.SplitReader], whose Fetch asks. The small protocol that a connector begins with is that of package feed; the
// guide is docs/en/write-a-connector.md.
//
// # The protocol
//
//	client                    server
//	LIST                      TOPIC name next     for each topic; next is the number of the message to come
//	                          END
//	TAIL name number          MSG number milliseconds text     from that number on, and then as they come
//	                          PING                             now and then; who hears nothing for long, reconnects
//	ACK number                                                 answers a PING: what is before the number may be forgotten
//	                          ERR code text                    "gone": the number is not kept any more; "unknown": no such topic; else it passes
//
// Messages of a topic are numbered from 1, without gaps.
//
// # How pushes become fetches
//
//		                receiver, one for each topic                    fetcher               reader loop
//		socket ──lines──> parse, check the number ──> bounded buffer ──> Fetch ──> hand-over ──> emit, position
//		  ^                                                                                        │
//		  └── ACK, in answer to a PING <──────────── acks (a lock, three lines) <─────────── OnCheckpoint
//
//	  - The receiver (receive.go) owns its connection and never drops a message: when its buffer is full it stops reading. Then the kernel's buffers
//	    fill, and then the server waits. That is all there is to backpressure; a paused topic is held back in the same way.
//	  - Fetch (fetch.go) takes what is in the buffers, and else waits for the bell or the end of its context. A wakeup ends the wait, never a
//	    connection, and what was received meanwhile is there the next time.
//	  - A connection that breaks is made again, and asks for the number after the last message that was put into the buffer. The position in a
//	    checkpoint is another one, further back; it is where a new reader begins.
//	  - What completed checkpoints contain is acknowledged, so that the server may forget it. An acknowledgement may be late or missing, and then costs
//	    the server some memory; it must never be early.
//	  - Close ends every receiver and waits for it.
//
// server.go is a server. The program cmd/follow reads one into files.
package tail
