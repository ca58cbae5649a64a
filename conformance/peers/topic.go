package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topicName  = "bench"
	partitions = 8
)

// content says what a topic holds.
type content struct {
	Records int    `json:"records"`
	Size    int    `json:"size"`  // bytes of a value
	Codec   string `json:"codec"` // none, gzip, snappy, lz4, zstd
	// PerBatch is how many records a batch holds, 0 for what fits in one MiB. With it values repeat and compress to nothing.
	PerBatch int `json:"per_batch"`
}

var codecsByName = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// largestBatch is what the broker takes, before compression.
const largestBatch = 64 << 20

// fill writes the topic. Every partition gets the same number of records.
func fill(ctx context.Context, brokers []string, c content) error {
	codec, ok := codecsByName[c.Codec]
	if !ok {
		return fmt.Errorf("codec %q is not known (none, gzip, snappy, lz4, zstd)", c.Codec)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topicName), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20 * time.Millisecond), kgo.MaxBufferedRecords(200_000),
	}
	if c.PerBatch > 0 { // each flush below is one batch
		options = append(options, kgo.ProducerBatchMaxBytes(largestBatch), kgo.BrokerMaxWriteBytes(2*largestBatch),
			kgo.ManualFlushing(), kgo.MaxBufferedRecords(c.PerBatch+1))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var failed error
	for i := range c.Records {
		p := int32(i % partitions)
		if c.PerBatch > 0 {
			p = int32(i / c.PerBatch % partitions)
		}
		client.Produce(ctx, &kgo.Record{Partition: p, Value: c.value(uint64(i))}, func(_ *kgo.Record, err error) {
			failed = errors.Join(failed, err) // callbacks come one at a time
		})
		if c.PerBatch > 0 && (i+1)%c.PerBatch == 0 {
			if err := client.Flush(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(client.Flush(ctx), failed)
}

// value is text of 16 letters in no order, which compresses to about half; or the same letter all over.
func (c content) value(i uint64) []byte {
	v := bytes.Repeat([]byte{'a'}, c.Size)
	if c.PerBatch > 0 {
		return v
	}
	x := i*0x9e3779b97f4a7c15 + 1
	for j := range v {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		v[j] += byte(x & 15)
	}
	return v
}
