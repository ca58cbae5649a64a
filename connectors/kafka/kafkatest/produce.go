package kafkatest

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produce writes records to the partitions they name, uncompressed and in order, and returns when all are written. The
// records then have their offsets.
func (b *Broker) Produce(ctx context.Context, records ...*kgo.Record) error {
	client, err := b.plainClient()
	if err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("kafkatest: produce: %w", err)
	}
	return nil
}

// Transaction is one that is open. Exactly one of Commit and Abort ends it.
type Transaction struct{ client *kgo.Client }

// Begin opens a transaction and writes records in it. Further ones may be written with [Transaction.Produce].
func (b *Broker) Begin(ctx context.Context, records ...*kgo.Record) (*Transaction, error) {
	b.mu.Lock()
	b.mu.transactions++
	id := fmt.Sprintf("kafkatest-%d", b.mu.transactions)
	b.mu.Unlock()
	client, err := b.client(kgo.TransactionalID(id))
	if err != nil {
		return nil, err
	}
	t := &Transaction{client}
	if err := client.BeginTransaction(); err != nil {
		client.Close()
		return nil, fmt.Errorf("kafkatest: begin a transaction: %w", err)
	}
	if err := t.Produce(ctx, records...); err != nil {
		client.Close()
		return nil, err
	}
	return t, nil
}

// Produce writes records in the transaction.
func (t *Transaction) Produce(ctx context.Context, records ...*kgo.Record) error {
	if err := t.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("kafkatest: produce in a transaction: %w", err)
	}
	return AwaitNoted(ctx, t.client, records...)
}

// Commit makes the records visible to readers of committed ones. The marker takes one offset in each partition written to.
func (t *Transaction) Commit(ctx context.Context) error { return t.end(ctx, kgo.TryCommit) }

// Abort discards the records. The marker takes one offset in each partition written to.
func (t *Transaction) Abort(ctx context.Context) error { return t.end(ctx, kgo.TryAbort) }

func (t *Transaction) end(ctx context.Context, how kgo.TransactionEndTry) error {
	defer t.client.Close()
	if err := t.client.EndTransaction(ctx, how); err != nil {
		return fmt.Errorf("kafkatest: end a transaction: %w", err)
	}
	return nil
}

func (b *Broker) plainClient() (*kgo.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.producer != nil {
		return b.mu.producer, nil
	}
	client, err := b.client()
	b.mu.producer = client
	return client, err
}

func (b *Broker) client(options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, b.ClientOptions()...)
	client, err := kgo.NewClient(append(options,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.DisableClientMetrics(),
	)...)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: make a client: %w", err)
	}
	return client, nil
}

// grow creates partitions and makes this package's own producer learn of them.
func (b *Broker) grow(ctx context.Context, topic string, partitions int32) error {
	client, err := b.client()
	if err != nil {
		return err
	}
	defer client.Close()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, partitions
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("kafkatest: grow topic %q: %w", topic, err)
	}
	var problems []error
	for i := range resp.Topics {
		problems = append(problems, kerr.ErrorForCode(resp.Topics[i].ErrorCode))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("kafkatest: grow topic %q: %w", topic, err)
	}
	b.mu.Lock()
	producer := b.mu.producer
	b.mu.producer = nil
	b.mu.Unlock()
	if producer != nil {
		producer.Close()
	}
	return nil
}
