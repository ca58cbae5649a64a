package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/testdata/rides"
)

func (c *command) devCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "dev", Short: "Things to play with while writing a job", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(c.devKafkaCommand(), c.devKinesisCommand())
	return cmd
}

type brokerFlags struct {
	port    int
	topics  []string
	records int64
	rate    float64
	forked  bool
}

const (
	defaultPort    = 9092
	defaultTopic   = "rides:4"
	defaultRecords = 1000
	maxPartitions  = 1024
	fillBatch      = 1000
)

func (c *command) devKafkaCommand() *cobra.Command {
	var f brokerFlags
	cmd := &cobra.Command{
		Use: "kafka", Short: "Run an embedded Kafka broker until it is interrupted",
		Long: "Runs a Kafka broker inside this process, with its data in memory, and fills a topic with sample rides. It needs no Java.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.devKafka(cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.port, "port", defaultPort, "port on 127.0.0.1; 0 takes a free one")
	cmd.Flags().StringArrayVar(&f.topics, "topic", []string{defaultTopic}, "topic to create, as NAME:PARTITIONS; may be repeated, the first one is filled")
	cmd.Flags().Int64Var(&f.records, "records", defaultRecords, "sample records to begin with")
	cmd.Flags().Float64Var(&f.rate, "rate", 0, "sample records a second to add for ever after")
	// For the demo: the broker announces its address in one line and ends when its standard input does, so that it never
	// outlives its parent, whatever kills that.
	cmd.Flags().BoolVar(&f.forked, "forked", false, "")
	_ = cmd.Flags().MarkHidden("forked")
	return cmd
}

type topicSpec struct {
	name       string
	partitions int32
}

func parseTopics(args []string) ([]topicSpec, error) {
	var list []topicSpec
	for _, a := range args {
		name, count, given := strings.Cut(a, ":")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(count); err != nil || n < 1 || n > maxPartitions {
				return nil, fmt.Errorf("penstock: --topic %q: want NAME:PARTITIONS with 1 to %d partitions", a, maxPartitions)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("penstock: --topic %q has no name: want NAME:PARTITIONS", a)
		}
		list = append(list, topicSpec{name, int32(n)})
	}
	return list, nil
}

func (c *command) devKafka(ctx context.Context, f brokerFlags) error {
	topics, err := parseTopics(f.topics)
	if err != nil {
		return &exitError{exitBadInput, err}
	}
	broker, err := kafkatest.NewBroker(kafkatest.Options{Port: f.port, AutoCreate: true})
	if err != nil {
		return failed(fmt.Errorf("penstock: port %d: %w (is it taken? choose another with --port)", f.port, err))
	}
	defer broker.Close()
	for _, t := range topics {
		if err := broker.CreateTopic(t.name, t.partitions, nil); err != nil {
			return failed(fmt.Errorf("penstock: topic %s: %w", t.name, err))
		}
	}
	if len(topics) > 0 {
		at := time.Now() // what a person reads has the lag of something that was just written
		if f.forked {
			at = time.Time{} // the demo compares times
		}
		if err := fill(ctx, broker, topics[0], 0, f.records, at); err != nil {
			return failed(fmt.Errorf("penstock: topic %s: %w", topics[0].name, err))
		}
	}
	address := strings.Join(broker.Addrs(), ",")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.forked {
		fmt.Fprintln(c.Stdout, address)
		go func() {
			_, _ = io.Copy(io.Discard, bufio.NewReader(c.Stdin))
			cancel()
		}()
	} else {
		c.announce(address, topics, f)
	}
	failures := make(chan error, 1)
	if f.rate > 0 && len(topics) > 0 {
		go func() { failures <- drip(ctx, broker, topics[0], f.records, f.rate) }()
	}
	select {
	case <-c.Signals:
	case <-ctx.Done():
	case err := <-failures:
		return failed(fmt.Errorf("penstock: topic %s: %w", topics[0].name, err))
	}
	return nil
}

func (c *command) announce(address string, topics []topicSpec, f brokerFlags) {
	var parts []string
	for _, t := range topics {
		parts = append(parts, fmt.Sprintf("%q (%s)", t.name, human.Plural(t.partitions, "partition")))
	}
	fmt.Fprintf(c.Stdout, "Broker on %s. Its data is in memory.\n", address)
	if len(topics) > 0 {
		fmt.Fprintf(c.Stdout, "Topics: %s; %s in %q.\n", strings.Join(parts, ", "), human.Plural(f.records, "record"), topics[0].name)
	}
	if f.rate > 0 {
		fmt.Fprintf(c.Stdout, "Adding %s.\n", human.Rate(f.rate))
	}
	fmt.Fprintln(c.Stdout, "Stop it with Ctrl-C.")
}

// fill writes rides from..to-1 to a topic, at the given time or, when that is zero, at the end of each ride.
func fill(ctx context.Context, broker *kafkatest.Broker, t topicSpec, from, to int64, at time.Time) error {
	var batch []*kgo.Record
	for i := from; i < to; i++ {
		r := rides.At(i)
		rec := &kgo.Record{Topic: t.name, Partition: r.Partition(t.partitions), Key: r.Key(), Value: r.Value(), Timestamp: at}
		if at.IsZero() {
			rec.Timestamp = r.Ended
		}
		batch = append(batch, rec)
		if len(batch) == fillBatch || i == to-1 {
			if err := broker.Produce(ctx, batch...); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// drip adds rides at a rate until ctx ends.
func drip(ctx context.Context, broker *kafkatest.Broker, t topicSpec, next int64, rate float64) error {
	const tick = 100 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		due += rate * tick.Seconds()
		n := int64(due)
		due -= float64(n)
		if err := fill(ctx, broker, t, next, next+n, time.Now()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		next += n
	}
}
