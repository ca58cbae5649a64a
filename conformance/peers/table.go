package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// row is a line of the table: a reader, once a round.
type row struct {
	name    string
	text    string
	program func() (program, error)
	costs   []cost
}

// bench is a broker with its topic, and everybody who reads it.
type bench struct {
	content content
	broker  string
	rows    []*row
}

// table prints the comparison.
func table(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	c := content{Codec: "none"}
	flags.IntVar(&c.Records, "records", 3_000_000, "how many the topic holds")
	flags.IntVar(&c.Size, "size", 100, "bytes of a value")
	flags.StringVar(&c.Codec, "codec", c.Codec, "compression of the topic: none, gzip, snappy, lz4, zstd")
	rounds := flags.Int("rounds", 5, "how often everybody takes a turn")
	only := flags.String("only", "", "a regular expression that the names of rows match; "+rawDirect+" always runs")
	binary := flags.String("penstock", "", "the `binary` to measure; built when empty")
	bentoBinary := flags.String("bento", "", "a Bento `binary`; its rows are left out without one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
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
	broker, stop, err := startBroker(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	b := &bench{content: c, broker: broker}
	for _, r := range b.all(p, bento{*bentoBinary, dir}) {
		if r.name == rawDirect || chosen.MatchString(r.name) {
			b.rows = append(b.rows, r)
		}
	}
	for i := range *rounds {
		if err := b.round(ctx, i); err != nil {
			return err
		}
		if err := p.clean(); err != nil {
			return err
		}
	}
	b.print()
	return nil
}

// all are the rows there could be.
func (b *bench) all(p *penstock, bento bento) []*row {
	rows := []*row{
		b.library(rawDirect, "franz-go, partitions assigned, nothing committed"),
		b.library("raw-group", "franz-go, consumer group, autocommit"),
		{name: "penstock", text: "Penstock into `blackhole`, checkpoints on disk", program: func() (program, error) { return p.job(b.broker, toNothing) }},
		{name: "penstock-jsonl", text: "Penstock into files of JSON lines, exactly once", program: func() (program, error) { return p.job(b.broker, toFiles) }},
		b.library("sarama", "sarama, consumer group, MarkMessage"),
		b.library("segmentio", "segmentio/kafka-go, ReadMessage, CommitInterval"),
		b.library("watermill-kafka", "watermill-kafka, Ack per message"),
	}
	same := b.library("raw-direct-gogc400", "franz-go, partitions assigned, GOGC=400")
	plain := same.program
	same.program = func() (program, error) {
		r, err := plain()
		r.command, r.env = slices.Clone(r.command), []string{"GOGC=400"}
		r.command[3] = rawDirect
		return r, err
	}
	rows = slices.Insert(rows, 1, same)
	if bento.binary != "" {
		rows = append(rows,
			&row{name: "bento", text: "Bento, `kafka_franz`, default", program: func() (program, error) { return bento.job(b.broker, b.content.Records, "") }},
			&row{name: "bento-tuned", text: "Bento, `kafka_franz`, batches of 10,000", program: func() (program, error) { return bento.job(b.broker, b.content.Records, bentoTuned) }})
	}
	return rows
}

func (b *bench) library(name, text string) *row {
	return &row{name: name, text: text, program: func() (program, error) {
		self, err := os.Executable()
		return program{command: []string{self, "-read", "-reader", name, "-broker", b.broker, "-records", strconv.Itoa(b.content.Records)}}, err
	}}
}

// round lets everybody run once. The order turns, so that nobody always follows the same one.
func (b *bench) round(ctx context.Context, number int) error {
	for i := range b.rows {
		r := b.rows[(i+number)%len(b.rows)]
		p, err := r.program()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		c, err := p.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		r.costs = append(r.costs, c)
		fmt.Fprintf(os.Stderr, "round %d  %-20s %6.2f CPU s  %6.2f s  %5d MB\n", number+1, r.name, c.cpu.Seconds(), c.reading.Seconds(), c.rss>>20)
	}
	return nil
}

// print prints the medians as a table in Markdown.
func (b *bench) print() {
	fmt.Printf("\n%d records of %d B, codec %s, %d partitions, medians of %d interleaved runs\n\n", b.content.Records, b.content.Size, b.content.Codec, partitions, len(b.rows[0].costs))
	fmt.Println("| reader | processor time, relative | records/s, relative | CPU s per million | records/s | peak memory MB |")
	fmt.Println("|---|---|---|---|---|---|")
	base := b.rows[slices.IndexFunc(b.rows, func(r *row) bool { return r.name == rawDirect })]
	millions := float64(b.content.Records) / 1e6
	for _, r := range b.rows {
		cpu := median(r.costs, func(i int) float64 { return r.costs[i].cpu.Seconds() / base.costs[i].cpu.Seconds() })
		rate := median(r.costs, func(i int) float64 { return base.costs[i].reading.Seconds() / r.costs[i].reading.Seconds() })
		perMillion := median(r.costs, func(i int) float64 { return r.costs[i].cpu.Seconds() / millions })
		perSecond := median(r.costs, func(i int) float64 { return millions * float64(time.Second) / float64(r.costs[i].reading) })
		rss := median(r.costs, func(i int) float64 { return float64(r.costs[i].rss) / (1 << 20) })
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f M | %.0f |\n", r.text, cpu, rate, perMillion, perSecond, rss)
	}
}

func median(costs []cost, of func(i int) float64) float64 {
	values := make([]float64, len(costs))
	for i := range costs {
		values[i] = of(i)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
