package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	aws_kinesis "github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/kinesis"
	"github.com/penstock-dev/penstock/runtime/engine"
)

// BenchmarkKinesisIngest compares, over the double in a process of its own, a job of the engine into the blackhole with a loop on the bare client that reads the
// same shards, within the service's limits too. The two take turns, and the ratio is the median over the pairs, of the processor time of this process: wall
// time depends on who else uses the machine.
//
//	GOGC=400 go test -run xxx -bench KinesisIngest -benchtime 5x ./conformance/crash
func BenchmarkKinesisIngest(b *testing.B) {
	for _, way := range []string{"polling", "fan-out"} {
		for _, size := range []int{100, 1024} {
			b.Run(fmt.Sprintf("%s/bytes=%d", way, size), func(b *testing.B) {
				v := newVolume(b, size)
				raw, job := v.poll, v.job
				if way == "fan-out" {
					raw, job = v.subscribe, v.subscribedJob
				}
				var ratios, raws, jobs []float64
				for b.Loop() {
					r, j := v.cost(b, "raw", raw), v.cost(b, "job", job)
					ratios, raws, jobs = append(ratios, j/r), append(raws, r), append(jobs, j)
				}
				b.ReportMetric(median(raws), "raw-cpu-ns/record")
				b.ReportMetric(median(jobs), "job-cpu-ns/record")
				b.ReportMetric(median(ratios), "job/raw")
			})
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// volume is a stream that is full and written no more.
type volume struct {
	endpoint  string
	client    *aws_kinesis.Client
	arn       string
	shards    []string
	records   int
	consumers int
}

const (
	volumeShards = 4
	volumeBytes  = 48 << 20 // of values
	mostRecords  = 400_000
)

func newVolume(b *testing.B, size int) *volume {
	b.Helper()
	b.Setenv("AWS_CA_BUNDLE", "") // authorities of the machine, which a client without TLS reads all the same
	endpoint, stop, err := startServer(b.Context(), "", volumeCommand, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(stop)
	v := &volume{endpoint: endpoint, client: kinesisClient(endpoint), records: min(volumeBytes/size, mostRecords) / 500 * 500}
	if err := v.fill(b.Context(), size); err != nil {
		b.Fatal(err)
	}
	return v
}

func (v *volume) fill(ctx context.Context, size int) error {
	if _, err := v.client.CreateStream(ctx, &aws_kinesis.CreateStreamInput{StreamName: aws.String(stream), ShardCount: aws.Int32(volumeShards)}); err != nil {
		return err
	}
	list, err := v.client.ListShards(ctx, &aws_kinesis.ListShardsInput{StreamName: aws.String(stream)})
	if err != nil {
		return err
	}
	for _, s := range list.Shards {
		v.shards = append(v.shards, *s.ShardId)
	}
	sum, err := v.client.DescribeStreamSummary(ctx, &aws_kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
	if err != nil {
		return err
	}
	v.arn = *sum.StreamDescriptionSummary.StreamARN
	batch := make([]types.PutRecordsRequestEntry, 500)
	for from := 0; from < v.records; from += len(batch) {
		for i := range batch {
			batch[i] = types.PutRecordsRequestEntry{PartitionKey: aws.String(strconv.Itoa(from + i)), Data: make([]byte, size)}
		}
		out, err := v.client.PutRecords(ctx, &aws_kinesis.PutRecordsInput{StreamName: aws.String(stream), Records: batch})
		if err != nil || *out.FailedRecordCount > 0 {
			return errors.Join(err, errors.New("the stream could not be filled"))
		}
	}
	return nil
}

// cost is the processor time of a record, in nanoseconds.
func (v *volume) cost(b *testing.B, side string, read func(context.Context) (int, error)) float64 {
	b.Helper()
	runtime.GC()
	before := processorTime(b)
	var n int
	var err error
	pprof.Do(b.Context(), pprof.Labels("side", side), func(ctx context.Context) { n, err = read(ctx) }) // so that a profile tells them apart: -tagfocus
	used := processorTime(b) - before
	if err != nil || n != v.records {
		b.Fatalf("%d of %d records, %v", n, v.records, err)
	}
	return float64(used.Nanoseconds()) / float64(n)
}

// look looks at what a sink looks at.
type look struct {
	records, bytes, places int
	newest                 time.Time
}

func (l *look) at(records []types.Record) {
	for i := range records {
		r := &records[i]
		l.records++
		l.bytes += len(*r.PartitionKey) + len(r.Data)
		l.places += len(*r.SequenceNumber)
		l.newest = *r.ApproximateArrivalTimestamp
	}
}

// each reads all shards at the same time.
func (v *volume) each(ctx context.Context, read func(ctx context.Context, shard string) (look, error)) (int, error) {
	var group sync.WaitGroup
	looks, failed := make([]look, len(v.shards)), make([]error, len(v.shards))
	for i, id := range v.shards {
		group.Go(func() { looks[i], failed[i] = read(ctx, id) })
	}
	group.Wait()
	sum := 0
	for _, l := range looks {
		sum += l.records
	}
	return sum, errors.Join(failed...)
}

// What the service allows for a shard. The raw loop keeps to it, as every reader has to.
const (
	pagesPerSecond = 5
	bytesPerSecond = 2 << 20
)

// poll is the raw loop: iterator, pages until the tip.
func (v *volume) poll(ctx context.Context) (int, error) {
	return v.each(ctx, func(ctx context.Context, id string) (l look, err error) {
		first, err := v.client.GetShardIterator(ctx, &aws_kinesis.GetShardIteratorInput{StreamName: aws.String(stream), ShardId: &id, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			return l, err
		}
		for at := first.ShardIterator; ; {
			out, err := v.client.GetRecords(ctx, &aws_kinesis.GetRecordsInput{ShardIterator: at, Limit: aws.Int32(10_000)})
			if err != nil {
				return l, err
			}
			before := l.bytes
			l.at(out.Records)
			if *out.MillisBehindLatest == 0 {
				return l, nil
			}
			at = out.NextShardIterator
			paid := time.Duration(l.bytes-before) * time.Second / bytesPerSecond
			if err := pause(ctx, max(paid, time.Second/pagesPerSecond)); err != nil {
				return l, err
			}
		}
	})
}

// consumer registers one that nobody used before: two subscriptions of one within five seconds are refused.
func (v *volume) consumer(ctx context.Context) (arn string, done func() error, err error) {
	v.consumers++
	name := fmt.Sprintf("consumer-%d", v.consumers)
	out, err := v.client.RegisterStreamConsumer(ctx, &aws_kinesis.RegisterStreamConsumerInput{StreamARN: &v.arn, ConsumerName: &name})
	if err != nil {
		return "", nil, err
	}
	return *out.Consumer.ConsumerARN, func() error {
		_, err := v.client.DeregisterStreamConsumer(ctx, &aws_kinesis.DeregisterStreamConsumerInput{ConsumerARN: out.Consumer.ConsumerARN})
		return err
	}, nil
}

// subscribe is the raw loop of enhanced fan-out.
func (v *volume) subscribe(ctx context.Context) (n int, err error) {
	arn, done, err := v.consumer(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return v.each(ctx, func(ctx context.Context, id string) (l look, err error) {
		out, err := v.client.SubscribeToShard(ctx, &aws_kinesis.SubscribeToShardInput{
			ConsumerARN: &arn, ShardId: &id, StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
		}, func(o *aws_kinesis.Options) { o.Protocol = awsjson.New11(schemas.Kinesis_20131202) }) // one of its own: see Server.Client of kinesistest
		if err != nil {
			return l, err
		}
		events := out.GetStream()
		defer func() { err = errors.Join(err, events.Close()) }()
		for e := range events.Events() {
			if event, ok := e.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent); ok {
				l.at(event.Value.Records)
				if *event.Value.MillisBehindLatest == 0 {
					return l, nil
				}
			}
		}
		return l, events.Err()
	})
}

func (v *volume) job(ctx context.Context) (int, error) { return v.run(ctx, "") }

func (v *volume) subscribedJob(ctx context.Context) (n int, err error) {
	arn, done, err := v.consumer(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return v.run(ctx, arn)
}

// run runs a job without a stop until it has read everything.
func (v *volume) run(ctx context.Context, consumer string) (int, error) {
	sink := blackhole.New(blackhole.Off)
	h, err := engine.Start(ctx, engine.Job{
		Name: "ingest", Sink: sink,
		Source: engine.From(kinesisSourceOf(v.endpoint, consumer)),
	})
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(200 * time.Millisecond) // the loop beside it looks at no clock
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for done := false; !done && sink.Totals().Records < int64(v.records); {
		select {
		case <-tick.C:
		case <-deadline:
			done = true
		}
	}
	h.Cancel()
	_, err = h.Wait(ctx)
	return int(sink.Totals().Records), err
}

func kinesisSourceOf(endpoint, consumer string) *kinesis.Source {
	return &kinesis.Source{
		Stream: stream, Region: "us-east-1", Endpoint: endpoint, Consumer: consumer,
		Credentials: kinesis.Credentials{AccessKeyID: "crash", SecretAccessKey: "crash"},
	}
}
