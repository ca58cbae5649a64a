package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// serve is the broker process: it fills the topic, says its address, and ends with its standard input.
func serve(ctx context.Context, args []string) error {
	var c content
	if len(args) != 1 {
		return errUsage
	}
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	cluster, err := newBroker(ctx, c)
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// newBroker makes a broker whose topic is filled.
func newBroker(ctx context.Context, c content) (*kfake.Cluster, error) {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(partitions, topicName),
		// A consumer that nobody else joins does not have to wait for others.
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0", "message.max.bytes": strconv.Itoa(largestBatch)}),
	)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, cluster.ListenAddrs(), c); err != nil {
		cluster.Close()
		return nil, fmt.Errorf("fill the topic: %w", err)
	}
	return cluster, nil
}

// startBroker starts the broker process.
func startBroker(ctx context.Context, c content) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-broker", string(text))
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
		return "", nil, fmt.Errorf("start the broker: %w", err)
	}
	stop = func() { _ = errors.Join(in.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the broker says no address: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}
