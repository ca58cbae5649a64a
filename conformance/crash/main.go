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

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func main() {
	if served, err := serve(os.Args); served {
		if err != nil {
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

// serve serves what a run of this program wants from a process of its own, if that is what the arguments say.
func serve(args []string) (served bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	switch args[1] {
	case brokerCommand:
		return true, serveBroker()
	case kinesisCommand:
		return true, serveKinesis(kinesistest.Options{})
	case volumeCommand:
		return true, serveKinesis(kinesistest.Options{Unlimited: true})
	default:
		return false, nil
	}
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
	flags.StringVar(&c.source, "source", kafkaSource, "what is read: kafka, or kinesis, a stream that is resharded meanwhile (into files; -kills, -rescale, -interval, -shortest, -longest and -seed apply)")
	flags.BoolVar(&c.efo, "efo", false, "read kinesis with enhanced fan-out")
	flags.StringVar(&c.sink, "sink", fileSink, "where the output goes: file, or kafka, a topic of the same broker")
	flags.StringVar(&c.servers, "servers", embedded, "what to start: embedded, real (Apache Kafka), or cluster (three brokers that are killed in turn); of kinesis: embedded, or real (kinesis-local)")
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
	if c.source == kinesisSource {
		return runKinesis(ctx, c, given(flags))
	}
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
