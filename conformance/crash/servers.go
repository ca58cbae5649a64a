package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

// The servers that a run may use.
const (
	embedded = "embedded" // kfake, in a process of its own
	real     = "real"     // one node of Apache Kafka
	cluster  = "cluster"  // three brokers, of which one is killed every loseEvery and started again
)

// loseEvery is the time between two losses of a broker, downFor how long it stays away.
const (
	loseEvery = 5 * time.Second
	downFor   = 2 * time.Second
)

// start starts the servers of the run, or nothing when it was given the address of some. lose begins the losses of a cluster.
func (c *config) start(ctx context.Context, dir string) (lose func(context.Context), stop func(), err error) {
	none := func(context.Context) {}
	nothing := func() {}
	if len(c.brokers) > 0 {
		return none, nothing, nil
	}
	switch c.servers {
	case real, cluster:
		return c.startReal(ctx, dir)
	case "", embedded:
		address, stop, err := startBroker(ctx, c.self, nil)
		c.brokers = []string{address}
		return none, stop, err
	default:
		return nil, nil, fmt.Errorf("-servers %q is unknown (%s, %s, %s)", c.servers, embedded, real, cluster)
	}
}

func (c *config) startReal(ctx context.Context, dir string) (lose func(context.Context), stop func(), err error) {
	o := kafkaserver.Options{Dir: filepath.Join(dir, "kafka"), FastFailover: c.servers == cluster}
	start := kafkaserver.New
	if c.servers == cluster {
		start = kafkaserver.NewCluster
	}
	server, err := start(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	c.brokers = server.Addrs()
	stop = func() {
		if err := server.Close(); err != nil {
			c.say("the servers did not stop well: %v", err)
		}
	}
	return func(ctx context.Context) { c.loseBrokers(ctx, server) }, stop, nil
}

// loseBrokers kills one broker after the other until ctx ends: one every loseEvery, but none before the last one serves again, so that on a
// slow machine too there is always a majority. It returns at once.
func (c *config) loseBrokers(ctx context.Context, server *kafkaserver.Server) {
	if c.servers != cluster {
		return
	}
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			next := time.After(loseEvery)
			if err := c.loseOne(ctx, server, server.Brokers()[n%len(server.Brokers())]); err != nil && ctx.Err() == nil {
				c.say("lose a broker: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-next:
			}
		}
	}()
}

func (c *config) loseOne(ctx context.Context, server *kafkaserver.Server, id int) error {
	if err := server.Kill9(id); err != nil {
		return err
	}
	c.losses.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(downFor):
	}
	return errors.Join(server.Restart(id), server.WaitReady(ctx)) // started again in any case: what was committed is to be verified
}
