package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// consumer takes committed files away and counts what was in them. Its memory does not grow with the records: of each partition it
// keeps how many came, the highest number, and the sum of the numbers.
type consumer struct {
	dir  string
	seen [partitions]tally
}

type tally struct {
	count, highest, sum int64
}

// follow takes files away until ctx ends, and then what is left.
func (c *consumer) follow(ctx context.Context) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.take()
		case <-ticker.C:
		}
		if err := c.take(); err != nil {
			return err
		}
	}
}

func (c *consumer) take() error {
	files, err := filepath.Glob(filepath.Join(c.dir, "[^.]*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file) //nolint:gosec // a file of the job's output
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if err := c.record(strings.TrimSuffix(line, "\n")); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumer) record(value string) error {
	part, number, _ := strings.Cut(value, "/")
	p, err := strconv.Atoi(part)
	if err != nil || p < 0 || p >= partitions {
		return fmt.Errorf("%q is no record of the topic", value)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no record of the topic", value)
	}
	t := &c.seen[p]
	t.count++
	t.highest = max(t.highest, n)
	t.sum += n
	return nil
}

// records is how many came.
func (c *consumer) records() (n int64) {
	for i := range c.seen {
		n += c.seen[i].count
	}
	return n
}

// check says whether of every partition each record from 0 up to the highest came once: then count and sum are known.
func (c *consumer) check() error {
	for p, t := range c.seen {
		if want := t.highest + 1; t.count != want || t.sum != t.highest*want/2 {
			return fmt.Errorf("partition %d: %d records with sum %d, up to number %d: want %d with sum %d", p, t.count, t.sum, t.highest, want, t.highest*want/2)
		}
	}
	return nil
}
