package kinesis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// service makes the calls, each with a deadline. It may be used from any goroutine.
type service struct {
	source  Source
	client  *kinesis.Client
	account aws.CredentialsProvider
	idle    func()
	shared  *shared // with all readers of the stream in this process
}

// dial makes a service. The caller closes it.
func (s *Source) dial(ctx context.Context) (*service, error) {
	client, account, idle, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s|%s|%s%s", aws.ToString(client.Options().BaseEndpoint), client.Options().Region, s.Stream, s.StreamARN)
	return &service{source: *s, client: client, account: account, idle: idle, shared: share(key, s.InFlightBytes)}, nil
}

func (v *service) close() {
	v.shared.release()
	v.idle()
}

// lazy makes a service when it is first needed, which reads files and may ask a metadata service: nothing that a loop does.
type lazy struct {
	source Source

	mu struct {
		sync.Mutex
		made   *service
		closed bool
	}
}

func (l *lazy) get(ctx context.Context) (*service, error) {
	l.mu.Lock()
	made := l.mu.made
	l.mu.Unlock()
	if made != nil {
		return made, nil
	}
	v, err := l.source.dial(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.made != nil || l.mu.closed { // another call was faster, or nobody wants it any more
		v.close()
		if l.mu.closed {
			return nil, context.Canceled
		}
		return l.mu.made, nil
	}
	l.mu.made = v
	return v, nil
}

func (l *lazy) close() {
	l.mu.Lock()
	made := l.mu.made
	l.mu.made, l.mu.closed = nil, true
	l.mu.Unlock()
	if made != nil {
		made.close()
	}
}

// stream and arn are how the stream is named in a call.
func (v *service) stream() *string { return optional(v.source.Stream) }
func (v *service) arn() *string    { return optional(v.source.StreamARN) }

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (v *service) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, v.source.RequestTimeout)
}

// summary is what the service says of the stream as a whole.
type summary struct {
	created   int64 // milliseconds since 1970
	retention time.Duration
	arn       string
	status    types.StreamStatus
	at        time.Time // by the service's clock, in whole seconds; zero when it did not say
	got       time.Time // when the answer came, by the clock here
}

// now is the service's clock, at most a second late.
func (s summary) now() time.Time {
	if s.at.IsZero() {
		return time.Now()
	}
	return s.at.Add(time.Since(s.got))
}

func (v *service) describe(ctx context.Context) (summary, error) {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	out, err := v.client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: v.stream(), StreamARN: v.arn()})
	if err != nil {
		return summary{}, v.explain(ctx, "DescribeStreamSummary", err)
	}
	d := out.StreamDescriptionSummary
	if d == nil {
		return summary{}, fmt.Errorf("kinesis: stream %q: DescribeStreamSummary: an empty answer: is that address a Kinesis service?", v.source.name())
	}
	s := summary{arn: aws.ToString(d.StreamARN), status: d.StreamStatus, retention: time.Duration(aws.ToInt32(d.RetentionPeriodHours)) * time.Hour}
	if d.StreamCreationTimestamp != nil {
		s.created = max(d.StreamCreationTimestamp.UnixMilli(), 0)
	}
	s.at, _ = serverTime(out.ResultMetadata)
	s.got = time.Now()
	return s, nil
}

// serverTime is the time of the Date header.
func serverTime(m middleware.Metadata) (time.Time, bool) {
	t, ok := awsmiddleware.GetServerTime(m)
	return t, ok && !t.IsZero()
}

// Bounds of a list of shards.
const (
	maxPages        = 1000 // a million shards
	maxListRestarts = 3
)

// list returns all shards that filter lets through. A token that expires half way starts the list anew: pages of different lists do not belong
// together.
func (v *service) list(ctx context.Context, filter *types.ShardFilter) ([]types.Shard, error) {
	for try := 1; ; try++ {
		shards, err := v.listOnce(ctx, filter)
		if err == nil || failureOf(err) != expired || try == maxListRestarts {
			return shards, err
		}
	}
}

func (v *service) listOnce(ctx context.Context, filter *types.ShardFilter) (shards []types.Shard, err error) {
	input := &kinesis.ListShardsInput{StreamName: v.stream(), StreamARN: v.arn(), ShardFilter: filter}
	if v.source.pageSize > 0 {
		input.MaxResults = &v.source.pageSize
	}
	for range maxPages {
		out, err := v.page(ctx, input)
		if err != nil {
			return nil, err
		}
		shards = append(shards, out.Shards...)
		if aws.ToString(out.NextToken) == "" {
			return shards, nil
		}
		input = &kinesis.ListShardsInput{NextToken: out.NextToken, MaxResults: input.MaxResults} // the token stands for everything else
	}
	return nil, fmt.Errorf("kinesis: stream %q: its list of shards has no end after %d pages", v.source.name(), maxPages)
}

func (v *service) page(ctx context.Context, input *kinesis.ListShardsInput) (*kinesis.ListShardsOutput, error) {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	out, err := v.client.ListShards(ctx, input)
	if err != nil {
		return nil, v.explain(ctx, "ListShards", err)
	}
	return out, nil
}

// errNoShard marks a shard that the stream does not list.
var errNoShard = errors.New("the stream does not list the shard")

// closed asks whether a shard is closed. The service says so by the last sequence number of a shard, which an open one does not have.
func (v *service) closed(ctx context.Context, shard string) (bool, error) {
	shards, err := v.list(ctx, nil)
	if err != nil {
		return false, err
	}
	for i := range shards {
		if aws.ToString(shards[i].ShardId) == shard {
			return isClosed(&shards[i]), nil
		}
	}
	return false, errNoShard
}

func isClosed(s *types.Shard) bool {
	return s.SequenceNumberRange != nil && s.SequenceNumberRange.EndingSequenceNumber != nil
}

// iterator asks for a place in a shard.
func (v *service) iterator(ctx context.Context, shard string, at lineage.Position) (string, error) {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	input := &kinesis.GetShardIteratorInput{ShardId: &shard, StreamName: v.stream(), StreamARN: v.arn()}
	switch at.Kind {
	case lineage.TrimHorizon:
		input.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	case lineage.AtTimestamp:
		input.ShardIteratorType, input.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(time.UnixMilli(at.Millis))
	case lineage.AtSequence:
		input.ShardIteratorType, input.StartingSequenceNumber = types.ShardIteratorTypeAtSequenceNumber, &at.Sequence
	case lineage.AfterSequence:
		input.ShardIteratorType, input.StartingSequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &at.Sequence
		if at.Sub != lineage.Whole { // parts of that record are still to come
			input.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		}
	case lineage.Unresolved:
		return "", fmt.Errorf("kinesis: shard %s: no iterator for a position that is not concrete", shard)
	}
	out, err := v.client.GetShardIterator(ctx, input)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ShardIterator), nil
}

// page of records, as the service answers it, and its clock.
func (v *service) records(ctx context.Context, iterator string, limit int32) (*kinesis.GetRecordsOutput, time.Time, error) {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	out, err := v.client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: &limit, StreamARN: v.arn()})
	if err != nil {
		return nil, time.Time{}, err
	}
	at, ok := serverTime(out.ResultMetadata)
	if !ok {
		at = time.Now()
	}
	return out, at, nil
}
