package main

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	aws_kinesis "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/runtime/engine"
)

// counting counts the requests that a client sends, by operation.
type counting struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counting) wrap(o *aws_kinesis.Options) { o.HTTPClient = countingClient{o.HTTPClient, c} }

func (c *counting) of(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts["Kinesis_20131202."+operation]
}

type countingClient struct {
	aws_kinesis.HTTPClient
	*counting
}

// Do sends a request.
func (c countingClient) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.counts[r.Header.Get("X-Amz-Target")]++
	c.mu.Unlock()
	return c.HTTPClient.Do(r)
}

// What a thousand idle shards may take beyond a job of one shard, with four readers.
const (
	idleShards     = 1000
	idleFor        = 10 * time.Second
	mostPollHeap   = 24 << 20
	mostFanOutHeap = 128 << 20
)

// BenchmarkKinesisIdle runs jobs of a thousand shards that nothing is written to, and says what they hold and ask for.
func BenchmarkKinesisIdle(b *testing.B) {
	if testing.Short() {
		b.Skip("runs jobs for a while; left out with -short")
	}
	for name, way := range map[string]struct {
		consumer string
		most     uint64
		first    string // the call that each shard makes
	}{"polling": {"", mostPollHeap, "GetRecords"}, "fan-out": {"idle", mostFanOutHeap, "SubscribeToShard"}} {
		b.Run(name, func(b *testing.B) {
			endpoint, stop, err := startServer(b.Context(), "", kinesisCommand, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer stop()
			client := kinesisClient(endpoint)
			if _, err := client.CreateStream(b.Context(), &aws_kinesis.CreateStreamInput{StreamName: aws.String(stream), ShardCount: aws.Int32(idleShards)}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				idle(b, endpoint, way.consumer, way.first, way.most)
			}
		})
	}
}

func idle(b *testing.B, endpoint, consumer, first string, most uint64) {
	b.Helper()
	calls := &counting{counts: map[string]int{}}
	source := kinesisSourceOf(endpoint, consumer)
	source.Client = append(source.Client, calls.wrap)
	before, goroutines := live()
	h, err := engine.Start(b.Context(), engine.Job{Name: "idle", Parallelism: 4, Source: engine.From(source), Sink: blackhole.New(blackhole.Off)})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	wait(b, func() bool { return calls.of(first) >= idleShards })
	b.ReportMetric(time.Since(began).Seconds(), "s-until-all")
	from, used, at := calls.of(first), processorTime(b), time.Now()
	lists, described := calls.of("ListShards"), calls.of("DescribeStreamSummary")
	<-time.After(idleFor) // what an idle job does is what is measured
	took := time.Since(at).Seconds()
	b.ReportMetric(float64(calls.of(first)-from)/took, first+"/s")
	b.ReportMetric(float64(calls.of("ListShards")-lists)/took*60, "ListShards/min")
	b.ReportMetric(float64(calls.of("DescribeStreamSummary")-described)/took*60, "DescribeStreamSummary/min")
	b.ReportMetric((processorTime(b)-used).Seconds()/took, "cores")
	after, more := live()
	b.ReportMetric(float64(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))/(1<<20), "heap-MiB")
	b.ReportMetric(float64(after.StackInuse-min(before.StackInuse, after.StackInuse))/(1<<20), "stack-MiB")
	b.ReportMetric(float64(more-goroutines), "goroutines")
	h.Cancel()
	if _, err := h.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	if held := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); held > most {
		b.Errorf("%d idle shards hold %s of heap, want at most %s", idleShards, mib(held), mib(most))
	}
}

func mib(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// live is what is in use after a collection.
func live() (m runtime.MemStats, goroutines int) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m, runtime.NumGoroutine()
}

func wait(b *testing.B, so func() bool) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !so(); {
		select {
		case <-tick.C:
		case <-deadline:
			b.Fatal("it never came to this: each shard was asked for")
		}
	}
}
