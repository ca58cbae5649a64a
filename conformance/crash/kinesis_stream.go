package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

const (
	stream     = "crash"
	streamKeys = 64 // enough that each of eight shards has some
	// batchEvery is the time between two batches, each of one record of each key: with two shards that is within what the service takes.
	batchEvery = 50 * time.Millisecond
)

// crowd writes a stream under load and reshards it.
type crowd struct {
	client *kinesis.Client

	mu      sync.Mutex
	written [streamKeys]int // acknowledged records of each key
}

// kinesisClient makes each call once: one that is repeated may write twice.
func kinesisClient(endpoint string) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1,
		HTTPClient: &http.Client{Transport: ownBody{http.DefaultTransport}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "crash", SecretAccessKey: "crash"}, nil
		}),
	})
}

func newCrowd(ctx context.Context, endpoint string) (*crowd, error) {
	w := &crowd{client: kinesisClient(endpoint)}
	if _, err := w.client.CreateStream(ctx, &kinesis.CreateStreamInput{StreamName: aws.String(stream), ShardCount: aws.Int32(2)}); err != nil {
		return nil, err
	}
	return w, w.settled(ctx)
}

// ownBody sends a copy of each request's body: the SDK closes its own when the answer is there, and a transport that still looks for the end of the
// body then gives up an answer that was very fast.
type ownBody struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t ownBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return t.RoundTripper.RoundTrip(own)
}

// write writes batches until ctx ends. A key has one record in a batch, and a batch is written whole before the next, so the records of a key
// are in the stream in the order of their numbers.
func (w *crowd) write(ctx context.Context) error {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := w.batch(context.WithoutCancel(ctx)); err != nil { // whole: what was sent and not acknowledged is neither there nor not
			return fmt.Errorf("write the stream: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// refusals bounds how often the records of a batch that were refused are written again.
const refusals = 100

func (w *crowd) batch(ctx context.Context) error {
	left := make([]types.PutRecordsRequestEntry, streamKeys)
	for k := range left {
		left[k] = types.PutRecordsRequestEntry{PartitionKey: aws.String(keyName(k)), Data: strconv.AppendInt(nil, int64(w.number(k)), 10)}
	}
	for range refusals {
		out, err := w.client.PutRecords(ctx, &kinesis.PutRecordsInput{StreamName: aws.String(stream), Records: left})
		if err != nil {
			return err
		}
		var again []types.PutRecordsRequestEntry
		for i, r := range out.Records {
			if r.ErrorCode != nil {
				again = append(again, left[i])
				continue
			}
			w.acknowledged(*left[i].PartitionKey)
		}
		if left = again; len(left) == 0 {
			return nil
		}
		if err := pause(ctx, batchEvery); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d records were refused %d times", len(left), refusals)
}

const keyPrefix = "key-"

func keyName(k int) string { return keyPrefix + strconv.Itoa(k) }

// keyNumber is the other way round; -1 is no key of ours.
func keyNumber(name string) int {
	digits, ours := strings.CutPrefix(name, keyPrefix)
	k, err := strconv.Atoi(digits)
	if !ours || err != nil || k < 0 || k >= streamKeys {
		return -1
	}
	return k
}

func (w *crowd) number(k int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written[k]
}

func (w *crowd) acknowledged(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[keyNumber(name)]++
}

// counts are the acknowledged records of each key, and their sum.
func (w *crowd) counts() (written [streamKeys]int, sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.written {
		sum += n
	}
	return w.written, sum
}

// reshard splits each open shard, or merges each with its neighbour, until there are as many as wanted. between waits before each step, so that the
// command is also killed with half of them done.
func (w *crowd) reshard(ctx context.Context, want int, between func(context.Context) error) error {
	for {
		open, err := w.open(ctx)
		if err != nil {
			return err
		}
		if len(open) == want {
			return nil
		}
		step := 1
		if len(open) > want {
			step = 2
		}
		for i := 0; i+step <= len(open); i += step {
			if err := between(ctx); err != nil {
				return err
			}
			if err := w.replace(ctx, open[i:i+step]); err != nil {
				return fmt.Errorf("reshard to %d: %w", want, err)
			}
		}
	}
}

// replace splits one shard in the middle, or merges two.
func (w *crowd) replace(ctx context.Context, shards []shard) error {
	var err error
	if len(shards) == 2 {
		_, err = w.client.MergeShards(ctx, &kinesis.MergeShardsInput{
			StreamName: aws.String(stream), ShardToMerge: &shards[0].id, AdjacentShardToMerge: &shards[1].id,
		})
	} else {
		_, err = w.client.SplitShard(ctx, &kinesis.SplitShardInput{
			StreamName: aws.String(stream), ShardToSplit: &shards[0].id, NewStartingHashKey: aws.String(shards[0].middle()),
		})
	}
	return errors.Join(err, w.settled(ctx))
}

// open are the open shards in the order of their hash keys.
func (w *crowd) open(ctx context.Context) ([]shard, error) {
	out, err := w.client.ListShards(ctx, &kinesis.ListShardsInput{StreamName: aws.String(stream)})
	if err != nil {
		return nil, err
	}
	var open []shard
	for _, s := range out.Shards {
		if s.SequenceNumberRange.EndingSequenceNumber != nil {
			continue
		}
		one, err := newShard(*s.ShardId, *s.HashKeyRange.StartingHashKey, *s.HashKeyRange.EndingHashKey)
		if err != nil {
			return nil, err
		}
		open = append(open, one)
	}
	slices.SortFunc(open, func(a, b shard) int { return a.first.Cmp(b.first) })
	return open, nil
}

// settled returns when the stream is not being changed.
func (w *crowd) settled(ctx context.Context) error {
	for {
		out, err := w.client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
		if err != nil {
			return err
		}
		if out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
