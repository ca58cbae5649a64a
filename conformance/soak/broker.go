package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

const (
	// brokerCommand as first argument makes this program serve the broker until its standard input ends.
	brokerCommand = "serve-broker"
	topic         = "soak"
	partitions    = 4
	// kept is how many records of a partition the broker remembers.
	kept = 100_000
	// tick is how often records are written.
	tick = 10 * time.Millisecond
)

// serveBroker writes rate records a second, numbered by partition, and removes what is old.
func serveBroker(rate int) error {
	b, err := kafkatest.NewBroker(kafkatest.Options{Topics: map[string]int32{topic: partitions}})
	if err != nil {
		return err
	}
	defer b.Close()
	client, err := kgo.NewClient(append(b.ClientOptions(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := fmt.Fprintln(os.Stdout, b.Addrs()[0]); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the parent's end, however it ends, ends this process too
		cancel()
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	each := max(1, int(int64(rate)*int64(tick)/int64(time.Second)/partitions))
	for next := 0; ; next += each {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var batch []*kgo.Record
		for p := range int32(partitions) {
			for n := next; n < next+each; n++ {
				batch = append(batch, &kgo.Record{Partition: p, Key: fmt.Appendf(nil, "k%d", n%1000), Value: fmt.Appendf(nil, "%d/%d", p, n)})
			}
		}
		if err := client.ProduceSync(ctx, batch...).FirstErr(); err != nil && ctx.Err() == nil {
			return err
		}
		if next/kept != (next+each)/kept {
			if err := forget(ctx, client, int64(next-kept)); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// forget deletes what stands before an offset.
func forget(ctx context.Context, client *kgo.Client, before int64) error {
	if before <= 0 {
		return nil
	}
	offsets := kadm.Offsets{}
	for p := range int32(partitions) {
		offsets.Add(kadm.Offset{Topic: topic, Partition: p, At: before})
	}
	_, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	return err
}

// startBroker runs the broker in a process of its own, whose memory is not the job's.
func startBroker(ctx context.Context, self string, rate int) (broker *exec.Cmd, address string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, self, brokerCommand, strconv.Itoa(rate))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", nil, fmt.Errorf("start the broker: %w", err)
	}
	stop = func() { _ = errors.Join(in.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, "", nil, fmt.Errorf("the broker says no address: %w", err)
	}
	return cmd, line[:len(line)-1], stop, nil
}
