package kafkatest

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// AwaitNoted waits until client has noted the partitions that it wrote these records to. Call it before client ends a transaction: while
// it has noted none of the transaction's partitions, EndTransaction commits nothing, and answers no error (franz-go 1.22). What is noted
// late is the first write to a topic: the goroutine that learned of its partitions sends the records that waited for that before.
func AwaitNoted(ctx context.Context, client *kgo.Client, records ...*kgo.Record) error {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for _, r := range records {
		for {
			if leader, _, _ := client.PartitionLeader(r.Topic, r.Partition); leader >= 0 {
				break
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return fmt.Errorf("kafkatest: partition %d of topic %q is not known to the client that wrote to it: %w", r.Partition, r.Topic, context.Cause(ctx))
			}
		}
	}
	return nil
}
