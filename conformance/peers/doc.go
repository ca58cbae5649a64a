// Command peers measures, side by side, what it costs to read a Kafka topic with Penstock and with other Go programs.
//
// It is a module of its own, so that nothing of what it compares with becomes a dependency of Penstock. Run it from the root of the
// repository:
//
//	go run -C conformance/peers . table                        # processor time, rate and memory of everybody
//	go run -C conformance/peers . table -size 1024 -records 1000000
//	go run -C conformance/peers . table -only 'raw|jsonl'      # some of the rows
//	go run -C conformance/peers . table -bento /usr/bin/bento  # with a program that is not built here
//	go run -C conformance/peers . codecs                       # compressed topics, one million records to a batch included
//	go run -C conformance/peers . restart                      # killed with SIGKILL: when it reads again, and what it repeats
//
// # What is measured
//
// The broker, kfake, runs in a process of its own and holds the whole topic: 8 partitions. Each reader is a process too, that reads
// every record and ends. Readers take turns, once a round, so that whatever else the machine does meets all of them; the table has the
// medians. Processor time is user and system time of the whole process, start and end included, as the kernel counts it; it depends
// little on other load. Records per second are from the first record to the last; those of Penstock over the whole life of its process,
// last commit included.
//
// All rows are relative to [rawDirect] of the same round: the loop that a franz-go client cannot do without. It looks at key, value,
// headers, offset and time of each record, as do the other readers, and as the sink of Penstock does.
//
// # What is fair
//
// Everybody gets the same records with the same information, and commits or checkpoints at most every five seconds. Peers that are made to
// acknowledge each message do so. Where a peer has settings for throughput there are two rows: as it comes, and tuned.
// Penstock's command sets GOGC to 400; one row gives the bare client the same.
//
// Not compared, since they cannot be built from a module proxy: Bento (give its binary with -bento), Redpanda Connect (its licence is
// not an open source one), Conduit (no sink of its own drops what it gets).
package main
