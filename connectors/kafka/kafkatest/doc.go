// Package kafkatest runs a Kafka cluster inside the process: for tests of this repository and of programs that embed the
// engine, and for the command's `dev kafka`. It needs neither Java nor a network; data lives in memory.
//
// In a test:
//
//	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{"orders": 4}})
//	source := kafka.Source{Brokers: broker.Addrs(), Topics: []string{"orders"}}
//	broker.Produce(ctx, &kgo.Record{Topic: "orders", Partition: 2, Value: []byte("first")})
//
// Elsewhere [NewBroker] returns errors instead of failing a test.
//
// The cluster is franz-go's kfake behind this package's names. What it does differently from Apache Kafka, as far as a reader
// can tell:
//
//   - After a leader move without new records it would call every epoch unknown. [NewBroker] answers such questions itself.
//   - It has no truncation; [Broker.SimulateTruncation] answers as a truncated log would.
//   - Compaction moves the start of the log up to the first record that survived, and never leaves emptied batches.
//   - A wrong password closes the connection instead of naming the reason.
//   - Quotas do not exist, and log append time is accepted but not applied.
//
// Anything else is reached through [Broker.Cluster]: faults, leader moves, retention.
package kafkatest
