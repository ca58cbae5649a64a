package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/testdata/rides"
)

type kinesisFlags struct {
	port      int
	stream    string
	shards    int
	consumers []string
	records   int64
	rate      float64
	unlimited bool
	forked    bool
}

const (
	defaultKinesisPort = 4567
	maxShards          = 1024
)

const kinesisHelp = `Commands: shards        list the shards
          shards N      split and merge until N are open
          split SHARD   divide a shard into halves
          merge A B     join two neighbours
          put N         add N sample records
          advance TIME  put the server's clock forward, such as 5m or 24h
A SHARD is its number or its id.
`

func (c *command) devKinesisCommand() *cobra.Command {
	var f kinesisFlags
	cmd := &cobra.Command{
		Use: "kinesis", Short: "Run a double of Kinesis until it is interrupted",
		Long: "Runs a double of Amazon Kinesis Data Streams inside this process, with its data in memory, and fills a stream with sample rides. Lines typed meanwhile split and\n" +
			"merge its shards; so does the service's own API. In the background of a shell give it no terminal: penstock dev kinesis </dev/null &\n\n" + kinesisHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.devKinesis(cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.port, "port", defaultKinesisPort, "port on 127.0.0.1; 0 takes a free one")
	cmd.Flags().StringVar(&f.stream, "stream", "rides", "stream to create and fill")
	cmd.Flags().IntVar(&f.shards, "shards", 4, "shards that it begins with")
	cmd.Flags().StringArrayVar(&f.consumers, "consumer", nil, "consumer of enhanced fan-out to register; may be repeated")
	cmd.Flags().Int64Var(&f.records, "records", defaultRecords, "sample records to begin with")
	cmd.Flags().Float64Var(&f.rate, "rate", 0, "sample records a second to add for ever after")
	cmd.Flags().BoolVar(&f.unlimited, "unlimited", false, "lift the service's limits on calls and bytes a second")
	// As of dev kafka: one line with the endpoint, and an end with the standard input.
	cmd.Flags().BoolVar(&f.forked, "forked", false, "")
	_ = cmd.Flags().MarkHidden("forked")
	return cmd
}

func (c *command) devKinesis(ctx context.Context, f kinesisFlags) error {
	if f.shards < 1 || f.shards > maxShards {
		return &exitError{exitBadInput, fmt.Errorf("penstock: --shards %d: want 1 to %d", f.shards, maxShards)}
	}
	server, err := kinesistest.New(kinesistest.Options{Port: f.port, Unlimited: f.unlimited})
	if err != nil {
		return failed(fmt.Errorf("penstock: port %d: %w (is it taken? choose another with --port)", f.port, err))
	}
	defer server.Close()
	d := &kinesisDev{server: server, stream: f.stream, out: c.Stdout}
	if err := d.prepare(f); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go func() {
		defer close(lines)
		readLines(ctx, c.Stdin, lines)
	}()
	if f.forked {
		fmt.Fprintln(c.Stdout, server.Endpoint())
	} else {
		d.announce(f)
	}
	return c.serveKinesis(ctx, d, lines, f)
}

// serveKinesis does what lines say and adds records until it is interrupted.
func (c *command) serveKinesis(ctx context.Context, d *kinesisDev, lines <-chan string, f kinesisFlags) error {
	const tick = 100 * time.Millisecond
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due := 0.0
	for {
		select {
		case <-c.Signals:
			return nil
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more {
				if f.forked {
					return nil
				}
				lines = nil // without a terminal it goes on
				continue
			}
			if err := d.do(line); err != nil {
				fmt.Fprintln(d.out, err)
			}
		case <-ticker.C:
			due += f.rate * tick.Seconds()
			n := int64(due)
			due -= float64(n)
			if err := d.fill(n); err != nil {
				return failed(err)
			}
		}
	}
}

func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

// kinesisDev is the double with its stream. One goroutine uses it.
type kinesisDev struct {
	server *kinesistest.Server
	stream string
	out    io.Writer
	next   int64 // ride
}

func (d *kinesisDev) prepare(f kinesisFlags) error {
	if err := d.server.CreateStream(f.stream, f.shards); err != nil {
		return &exitError{exitBadInput, fmt.Errorf("penstock: --stream %s: %w", f.stream, err)}
	}
	for _, name := range f.consumers {
		if _, err := d.server.RegisterConsumer(f.stream, name); err != nil {
			return &exitError{exitBadInput, fmt.Errorf("penstock: --consumer %s: %w", name, err)}
		}
	}
	if err := d.fill(f.records); err != nil {
		return failed(err)
	}
	return nil
}

func (d *kinesisDev) announce(f kinesisFlags) {
	fmt.Fprintf(d.out, "Kinesis on %s, region %s, any credentials. Its data is in memory.\n", d.server.Endpoint(), kinesistest.Region)
	fmt.Fprintf(d.out, "Stream %q with %s and %s.\n", f.stream, human.Plural(f.shards, "shard"), human.Plural(f.records, "record"))
	if f.rate > 0 {
		fmt.Fprintf(d.out, "Adding %s.\n", human.Rate(f.rate))
	}
	fmt.Fprint(d.out, kinesisHelp)
	fmt.Fprintln(d.out, "Stop it with Ctrl-C.")
}

// fill adds n rides.
func (d *kinesisDev) fill(n int64) error {
	for range n {
		r := rides.At(d.next)
		if _, err := d.server.Put(d.stream, kinesistest.Record{PartitionKey: string(r.Key()), Data: r.Value()}); err != nil {
			return fmt.Errorf("penstock: stream %s: %w", d.stream, err)
		}
		d.next++
	}
	return nil
}

// do performs a line.
func (d *kinesisDev) do(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	switch command, args := words[0], words[1:]; {
	case command == "shards" && len(args) == 0:
		return d.list()
	case command == "shards" && len(args) == 1:
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 || n > maxShards {
			return fmt.Errorf("shards %s: want 1 to %d", args[0], maxShards)
		}
		if err := d.server.Reshard(d.stream, n); err != nil {
			return err
		}
		return d.list()
	case command == "split" && len(args) == 1:
		lower, upper, err := d.server.Split(d.stream, shardName(args[0]))
		if err == nil {
			fmt.Fprintf(d.out, "%s and %s\n", lower, upper)
		}
		return err
	case command == "merge" && len(args) == 2:
		child, err := d.server.Merge(d.stream, shardName(args[0]), shardName(args[1]))
		if err == nil {
			fmt.Fprintln(d.out, child)
		}
		return err
	case command == "put" && len(args) == 1:
		n, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || n < 0 || n > rides.Count {
			return fmt.Errorf("put %s: want 0 to %s", args[0], human.Count(rides.Count))
		}
		return d.fill(n)
	case command == "advance" && len(args) == 1:
		by, err := time.ParseDuration(args[0])
		if err != nil || by <= 0 {
			return fmt.Errorf("advance %s: want a time such as 5m or 24h", args[0])
		}
		d.server.Advance(by)
		fmt.Fprintf(d.out, "It is %s there.\n", d.server.Clock().Now().UTC().Format(time.DateTime))
		return nil
	}
	fmt.Fprint(d.out, kinesisHelp)
	return nil
}

// shardName makes the id of a shard from its number; what is no number is an id.
func shardName(s string) string {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return fmt.Sprintf("shardId-%012d", n)
	}
	return s
}

func (d *kinesisDev) list() error {
	shards, err := d.server.Shards(d.stream)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SHARD\tSTATE\tPARENTS\tFIRST HASH KEY")
	for i := range shards {
		sh := &shards[i]
		state := "open"
		if !sh.Open() {
			state = "closed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", sh.ID, state, strings.Join(sh.Parents, " "), sh.FirstHash)
	}
	return table.Flush()
}
