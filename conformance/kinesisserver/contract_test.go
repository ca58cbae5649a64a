package kinesisserver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestMain(m *testing.M) { os.Exit(kinesisserver.Main(m)) }

// A statement is something that readers of Kinesis count on. check returns an error when the server does not keep it; trouble on the way to the question fails the test.
type statement struct {
	says  string
	check func(*testing.T, *backend) error
}

// backend is a server that the statements are checked against.
type backend struct {
	*kinesis.Client
	// deviations are the statements that it is known not to keep, with what it does instead.
	deviations map[string]string
}

// emulatorDeviations are those of kinesis-local 0.6.2. One that is no longer true fails the suite.
var emulatorDeviations = map[string]string{
	"a PutRecords call of more than 500 records is refused":                     "it takes them",
	"a list in pages keeps its filter":                                          "from the second page on closed shards are listed too",
	"AT_TRIM_HORIZON lists the shards that were open then":                      "it lists all",
	"the number of another shard is refused":                                    "it is taken",
	"an iterator that is none is refused":                                       "HTTP 500 without a type",
	"a closed shard's ending number is above those of its records":              "it is always 9223372036854775807, below all",
	"a closed shard's ending number is a position":                              "ResourceNotFoundException",
	"a shard gives at most five pages a second":                                 "nothing is limited",
	"a subscription delivers what is there, and then what comes":                "no initial response, so that the SDK gives up",
	"a subscription to a closed shard ends with its children":                   "no initial response, so that the SDK gives up",
	"a second subscription within five seconds is refused":                      "the first one fails already",
	"a subscription goes on at its continuation number without loss or repeats": "no initial response, so that the SDK gives up",
}

func TestContract(t *testing.T) {
	t.Parallel()
	statements := []statement{}
	for _, group := range [][]statement{aboutStreams, aboutLists, aboutPositions, aboutPages, aboutResharding, aboutFanOut} {
		statements = append(statements, group...)
	}
	known := make(map[string]bool)
	for _, st := range statements {
		known[st.says] = true
	}
	for says := range emulatorDeviations {
		if !known[says] {
			t.Errorf("a deviation is listed of a statement that is not there: %s", says)
		}
	}
	t.Run("kinesistest", func(t *testing.T) {
		t.Parallel()
		srv := kinesistest.Start(t, kinesistest.Options{})
		check(t, &backend{Client: srv.Client(once)}, statements)
	})
	t.Run("kinesis-local", func(t *testing.T) {
		t.Parallel()
		srv := kinesisserver.Shared(t)
		check(t, &backend{srv.Client(), emulatorDeviations}, statements)
	})
}

// once keeps the SDK from trying again: the contract is about single answers.
func once(o *kinesis.Options) { o.RetryMaxAttempts = 1 }

func check(t *testing.T, b *backend, statements []statement) {
	for _, st := range statements {
		t.Run(st.says, func(t *testing.T) {
			t.Parallel()
			err := st.check(t, b)
			does, deviates := b.deviations[st.says]
			switch {
			case deviates && err == nil:
				t.Errorf("the server keeps this now: take it from the list of deviations")
			case deviates:
				t.Logf("known deviation (%s): %v", does, err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// later lets the server's time pass, by asking for something until it is two milliseconds later: within one, which is as fine as it tells times,
// what came first and what came then are the same.
func (b *backend) later(t *testing.T, stream string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 2*time.Millisecond; {
		b.shards(t, stream)
	}
}

// stream makes one that is deleted when the test ends.
func (b *backend) stream(t *testing.T, shards int32) string {
	t.Helper()
	name := strings.ToLower(rand.Text())
	if _, err := b.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: &shards}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = b.DeleteStream(context.WithoutCancel(t.Context()), &kinesis.DeleteStreamInput{StreamName: &name, EnforceConsumerDeletion: aws.Bool(true)}) // some tests delete it themselves
	})
	kinesisserver.AwaitActive(t, b.Client, name)
	b.later(t, name) // its creation is before whatever is done with it
	return name
}

// put writes a record and says where it went.
func (b *backend) put(t *testing.T, stream, key, data string) *kinesis.PutRecordOutput {
	t.Helper()
	out, err := b.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: &stream, PartitionKey: &key, Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shards lists all.
func (b *backend) shards(t *testing.T, stream string, filter ...*types.ShardFilter) []types.Shard {
	t.Helper()
	in := &kinesis.ListShardsInput{StreamName: &stream}
	if len(filter) > 0 {
		in.ShardFilter = filter[0]
	}
	out, err := b.ListShards(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if out.NextToken != nil {
		t.Fatal("the list has more pages than expected")
	}
	return out.Shards
}

// iterator asks for one.
func (b *backend) iterator(t *testing.T, in kinesis.GetShardIteratorInput) (string, error) {
	out, err := b.GetShardIterator(t.Context(), &in)
	if err != nil {
		return "", err
	}
	return *out.ShardIterator, nil
}

// page reads one.
func (b *backend) page(t *testing.T, iterator string, limit int32) (*kinesis.GetRecordsOutput, error) {
	return b.GetRecords(t.Context(), &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: &limit})
}

// read is iterator and page, for what is there.
func (b *backend) read(t *testing.T, in kinesis.GetShardIteratorInput) ([]string, error) {
	it, err := b.iterator(t, in)
	if err != nil {
		return nil, err
	}
	page, err := b.page(t, it, 1000)
	if err != nil {
		return nil, err
	}
	return dataOf(page.Records), nil
}

func dataOf(records []types.Record) []string {
	data := []string{}
	for i := range records {
		data = append(data, string(records[i].Data))
	}
	return data
}

// want is the verdict of a comparison.
func want[T any](what string, got, wanted T) error {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: %v, want %v", what, got, wanted)
	}
	return nil
}

// wantCode is the verdict on an error that must have a name.
func wantCode(what string, err error, code string) error {
	answered, ok := errors.AsType[smithy.APIError](err)
	switch {
	case err == nil:
		return fmt.Errorf("%s: no error, want %s", what, code)
	case !ok:
		return fmt.Errorf("%s: want %s and not: %w", what, code, err)
	}
	return want(what, answered.ErrorCode(), code)
}
