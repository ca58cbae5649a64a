package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// saramaGroup reads as its documentation shows: a claim at a time, each message marked, marks committed every five seconds.
func saramaGroup(ctx context.Context, broker string, want int, s *sum) error {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = commitEvery
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Return.Errors = false
	group, err := sarama.NewConsumerGroup([]string{broker}, groupName(), config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts := make(chan sum, partitions)
	go func() {
		defer stop()
		for part := range parts {
			if s.records == 0 {
				s.first = part.first
			}
			s.records += part.records
			s.bytes += part.bytes
			s.offsets += part.offsets
			if s.records >= want {
				s.last = time.Now()
				return
			}
		}
	}()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topicName}, claims{parts}); err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			return errors.Join(err, group.Close())
		}
	}
	return group.Close()
}

// claims handles the partitions of a group, each on a goroutine of its own.
type claims struct{ parts chan<- sum }

func (claims) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (claims) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// report is after how many records a claim says so.
const report = 1000

func (c claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	var s sum
	end := claim.HighWaterMarkOffset()
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			s.add(m.Key, m.Value, len(m.Headers), m.Offset, m.Timestamp)
			session.MarkMessage(m, "")
			if s.records == report || m.Offset+1 == max(end, claim.HighWaterMarkOffset()) {
				select {
				case c.parts <- s:
					s = sum{}
				case <-session.Context().Done():
					return nil
				}
			}
		case <-session.Context().Done():
			return nil
		}
	}
}
