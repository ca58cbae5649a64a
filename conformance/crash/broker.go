package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// brokerCommand as first argument makes this program serve a broker until its standard input ends.
const brokerCommand = "serve-broker"

func serveBroker() error {
	b, err := kafkatest.NewBroker(kafkatest.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Println(b.Addrs()[0])
	_, err = io.Copy(io.Discard, os.Stdin) // the parent's end, however it ends, ends this process too
	return err
}

// startBroker runs the embedded broker in a process of its own. started, when not nil, is given the process.
func startBroker(ctx context.Context, self string, started func(*exec.Cmd)) (address string, stop func(), err error) {
	return startServer(ctx, self, brokerCommand, started)
}

// startServer runs this program with a command to serve something, in a process of its own, so that it outlives whatever is killed. The program says
// the address first.
func startServer(ctx context.Context, self, command string, started func(*exec.Cmd)) (address string, stop func(), err error) {
	if self == "" {
		if self, err = os.Executable(); err != nil {
			return "", nil, err
		}
	}
	cmd := exec.CommandContext(ctx, self, command)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("%s: %w", command, err)
	}
	if started != nil {
		started(cmd)
	}
	stop = func() { _ = errors.Join(in.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("%s says no address: %w", command, err)
	}
	return line[:len(line)-1], stop, nil
}

// more writes one record to each partition.
func more(ctx context.Context, brokers []string, partitions int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	for p := range partitions {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte("more")}).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// A transaction holds at least leastPerTransaction records, and there are some mostTransactions committed ones; every fourth one is aborted. The
// end of one takes a busy cluster a second.
const (
	leastPerTransaction = 5000
	mostTransactions    = 40
)

// fill writes the topic. The value of a record is "partition/number", counted over the committed ones; those of aborted
// transactions say so.
func fill(ctx context.Context, brokers []string, partitions, records int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("penstock-crash"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := createTopics(ctx, client, partitions); err != nil {
		return err
	}
	next, perTransaction := make([]int, partitions), max(leastPerTransaction, records/mostTransactions)
	for n, left := 0, records; left > 0; n++ {
		abort := n%4 == 3
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		var written []*kgo.Record
		for i := 0; i < perTransaction && left > 0; i++ {
			p := i % partitions
			value := "aborted"
			if !abort {
				value = fmt.Sprintf("%d/%d", p, next[p])
				next[p]++
				left--
			}
			rec := &kgo.Record{Topic: topic, Partition: int32(p), Key: fmt.Appendf(nil, "key-%d", i%97), Value: []byte(value)}
			client.Produce(ctx, rec, nil)
			if i < partitions {
				written = append(written, rec)
			}
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := kafkatest.AwaitNoted(ctx, client, written...); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(!abort)); err != nil {
			return err
		}
	}
	return settled(ctx, client)
}
