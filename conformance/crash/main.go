package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == brokerCommand {
		if err := serveBroker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	var c config
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.IntVar(&c.kills, "kills", 50, "how often the command is killed before it may end")
	flags.IntVar(&c.records, "records", 0, "committed records of the topic; 0 is 1,000,000, or 4,000 for each kill")
	flags.IntVar(&c.partitions, "partitions", 4, "partitions of the topic")
	flags.IntVar(&c.rate, "rate", -1, "records per second of all readers together; 0 is no limit, -1 is what lets the topic last for all lives")
	flags.BoolVar(&c.rescale, "rescale", false, "change the parallelism after each kill")
	flags.DurationVar(&c.interval, "interval", 100*time.Millisecond, "checkpoint interval of the job")
	flags.DurationVar(&c.shortest, "shortest", 30*time.Millisecond, "shortest life of the command")
	flags.DurationVar(&c.longest, "longest", 600*time.Millisecond, "longest life of the command")
	flags.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "seed of the schedule of kills")
	flags.StringVar(&c.sink, "sink", fileSink, "where the output goes: file, or kafka, a topic of the same broker")
	flags.StringVar(&c.servers, "servers", embedded, "what to start: embedded, real (Apache Kafka), or cluster (three brokers that are killed in turn)")
	brokers := flags.String("brokers", "", "comma separated addresses of a broker to use instead of starting one")
	flags.StringVar(&c.penstock, "penstock", "", "the command to kill; built from ./cmd/penstock when empty")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if c.sink != fileSink && c.sink != kafkaSink {
		fmt.Fprintf(os.Stderr, "crash: -sink %q: use %s or %s\n", c.sink, fileSink, kafkaSink)
		return 2
	}
	c.size()
	if *brokers != "" {
		c.brokers = strings.Split(*brokers, ",")
	}
	c.say = func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	report, err := crash(ctx, c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "crash: %v\n  Repeat it with: go run ./conformance/crash %s\n", err, c.flags())
		return 1
	}
	fmt.Println(report)
	if report.kills < c.kills {
		fmt.Printf("The topic was read up before the last %d kills; give it more records.\n", c.kills-report.kills)
		return 1
	}
	return 0
}

// size chooses what was not given.
func (c *config) size() {
	const (
		fewest  = 1_000_000
		perKill = 4_000
		fastest = 60_000
		life    = 330 * time.Millisecond // that a kill leaves the command on average, its start included
	)
	if c.records == 0 {
		c.records = max(fewest, c.kills*perKill)
	}
	if c.rate < 0 {
		c.rate = fastest
		if c.kills > 0 {
			c.rate = min(fastest, int(float64(c.records)/(float64(c.kills)*life.Seconds())))
		}
	}
}
