package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
)

// watermillGroup acknowledges each message, without which the next one does not come.
func watermillGroup(ctx context.Context, broker string, want int, s *sum) error {
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = commitEvery
	subscriber, err := kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: []string{broker}, ConsumerGroup: groupName(), Unmarshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: config,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	messages, err := subscriber.Subscribe(ctx, topicName)
	if err != nil {
		return errors.Join(err, subscriber.Close())
	}
	for s.records < want {
		m, ok := <-messages
		if !ok {
			break
		}
		offset, _ := kafka.MessagePartitionOffsetFromCtx(m.Context())
		at, _ := kafka.MessageTimestampFromCtx(m.Context())
		key, _ := kafka.MessageKeyFromCtx(m.Context())
		s.add(key, m.Payload, len(m.Metadata), offset, at)
		m.Ack()
	}
	return subscriber.Close()
}
