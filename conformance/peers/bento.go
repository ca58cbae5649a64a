package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// bento runs a Bento binary from the topic into its drop output.
type bento struct {
	binary string
	dir    string
}

const bentoConfig = `http: {enabled: true, address: "%s"}
input:
  kafka_franz:
    seed_brokers: ["%s"]
    topics: ["%s"]
    consumer_group: "%s"
    start_from_oldest: true
    commit_period: 5s
%s
output: {drop: {}}
metrics: {prometheus: {}}
logger: {level: WARN}
`

// bentoTuned is what gave the most records a second.
const bentoTuned = `    checkpoint_limit: 1000000
    batching: {count: 10000, period: 50ms}
`

func (b bento) job(broker string, want int, more string) (program, error) {
	address, err := freeAddress()
	if err != nil {
		return program{}, err
	}
	file := filepath.Join(b.dir, "bento.yaml")
	group := fmt.Sprintf("bento-%d", time.Now().UnixNano())
	text := fmt.Sprintf(bentoConfig, address, broker, topicName, group, more)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return program{}, err
	}
	done := func(ctx context.Context) (time.Duration, error) {
		return awaitCount(ctx, "http://"+address+"/metrics", "output_sent", want)
	}
	return program{command: []string{b.binary, "-c", file}, done: done}, nil
}

// awaitCount looks at a page of metrics until a counter has reached want, and says how long that took from where it moved.
func awaitCount(ctx context.Context, url, name string, want int) (time.Duration, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	first := time.Now()
	for moved := false; ; {
		n, err := counter(ctx, url, name) // an error: it is not up yet
		switch {
		case err == nil && n >= float64(want):
			return time.Since(first), nil
		case !moved:
			moved = err == nil && n > 0
			first = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func counter(ctx context.Context, url, name string) (n float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, err
			}
			n += value
		}
	}
	return n, lines.Err()
}
