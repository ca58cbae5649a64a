package main

import (
	"context"
	"errors"

	kafka "github.com/segmentio/kafka-go"
)

// segmentioGroup reads with ReadMessage, and commits every five seconds.
func segmentioGroup(ctx context.Context, broker string, want int, s *sum) error {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{broker}, GroupID: groupName(), Topic: topicName, StartOffset: kafka.FirstOffset, CommitInterval: commitEvery,
		IsolationLevel: kafka.ReadCommitted, MinBytes: 1, MaxBytes: 16 << 20,
	})
	for s.records < want {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return errors.Join(err, r.Close())
		}
		s.add(m.Key, m.Value, len(m.Headers), m.Offset, m.Time)
	}
	return r.Close()
}
