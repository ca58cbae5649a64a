package main

import (
	"context"
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

// loseBrokers kills one broker after the other until ctx ends. It returns at once.
func (c *config) loseBrokers(ctx context.Context, server *kafkaserver.Server) {
	if c.servers != cluster {
		return
	}
	go func() {
		for n := 0; ; n++ {
			id := server.Brokers()[n%len(server.Brokers())]
			for _, step := range []struct {
				after time.Duration
				do    func(int) error
			}{{loseEvery - downFor, server.Kill9}, {downFor, server.Restart}} {
				select {
				case <-ctx.Done():
					return
				case <-time.After(step.after):
				}
				if err := step.do(id); err != nil {
					c.say("broker %d: %v", id, err)
				}
			}
		}
	}()
}
