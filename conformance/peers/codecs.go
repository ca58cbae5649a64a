package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

// codecs prints what compressed topics cost: with values that compress to about half, and with batches of a million records that compress
// to next to nothing, so that a single fetch could bring the whole topic.
func codecs(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("codecs", flag.ContinueOnError)
	records := flags.Int("records", 2_000_000, "how many a topic holds")
	perBatch := flags.Int("batch", 1_000_000, "records of one byte in a batch of the dense topics; 0 leaves them out")
	dense := flags.Int("dense", 16_000_000, "how many records a dense topic holds")
	rounds := flags.Int("rounds", 3, "how often each is read")
	binary := flags.String("penstock", "", "the `binary` to measure; built when empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := newPenstock(ctx, *binary, dir)
	if err != nil {
		return err
	}
	for _, codec := range []string{"none", "lz4", "snappy", "zstd", "gzip"} {
		topics := []content{{Records: *records, Size: 100, Codec: codec}}
		if *perBatch > 0 && codec != "none" {
			topics = append(topics, content{Records: *dense, Size: 1, Codec: codec, PerBatch: *perBatch})
		}
		for _, c := range topics {
			if err := compare(ctx, c, p, *rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare reads one topic with the bare client, with Penstock, and with Penstock under a soft limit of memory.
func compare(ctx context.Context, c content, p *penstock, rounds int) error {
	broker, stop, err := startBroker(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	b := &bench{content: c, broker: broker}
	b.rows = []*row{
		b.library(rawDirect, "franz-go, partitions assigned"),
		{name: "penstock", text: "Penstock into `blackhole`", program: func() (program, error) { return p.job(broker, toNothing) }},
		{name: "penstock-limited", text: "the same, GOMEMLIMIT=" + memoryLimit, program: func() (program, error) {
			j, err := p.job(broker, toNothing)
			j.env = []string{"GOMEMLIMIT=" + memoryLimit}
			return j, err
		}},
	}
	for i := range rounds {
		if err := b.round(ctx, i); err != nil {
			return err
		}
	}
	if c.PerBatch > 0 {
		fmt.Printf("\nBatches of %d records:", c.PerBatch)
	}
	b.print()
	return p.clean()
}

// memoryLimit is what Go's collector is asked to stay below.
const memoryLimit = "512MiB"
