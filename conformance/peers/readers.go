package main

import (
	"context"
	"flag"
	"fmt"
	"time"
)

// rawDirect is what everybody is compared with.
const rawDirect = "raw-direct"

// reader reads want records of the topic and returns.
type reader func(ctx context.Context, broker string, want int, s *sum) error

// readers are the peers that are libraries, by the name of the row.
var readers = map[string]reader{
	rawDirect:         franzDirect,
	"raw-group":       franzGroup,
	"sarama":          saramaGroup,
	"segmentio":       segmentioGroup,
	"watermill-kafka": watermillGroup,
}

// sum looks at all of a record, and counts.
type sum struct {
	records, bytes, headers int
	offsets                 int64
	newest                  time.Time
	want                    int
	first, last             time.Time // when the first and the last record wanted came
}

func (s *sum) add(key, value []byte, headers int, offset int64, at time.Time) {
	if s.records == 0 && s.first.IsZero() {
		s.first = time.Now()
	}
	s.records++
	s.bytes += len(key) + len(value)
	s.headers += headers
	s.offsets += offset
	s.newest = at
	if s.records == s.want {
		s.last = time.Now()
	}
}

// reading begins the line that says how long it took from the first record to the last.
const reading = "reading "

// commitEvery is how often those that commit do.
const commitEvery = 5 * time.Second

// read is the process of a reader.
func read(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("read", flag.ContinueOnError)
	name := flags.String("reader", rawDirect, "")
	broker := flags.String("broker", "", "")
	want := flags.Int("records", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := readers[*name]
	if r == nil {
		return fmt.Errorf("no reader %q", *name)
	}
	s := sum{want: *want}
	if err := r(ctx, *broker, *want, &s); err != nil {
		return err
	}
	if s.last.IsZero() {
		return fmt.Errorf("%s read %d of %d records", *name, s.records, *want)
	}
	_, err := fmt.Printf(reading+"%g\n", s.last.Sub(s.first).Seconds())
	return err
}
