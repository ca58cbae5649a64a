package kinesis

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/sdk"
)

// What the live test is told by the environment; docs/en/kinesis.md says what it needs and costs. Region and credentials are those of the SDK's default chain.
const (
	liveStream   = "PENSTOCK_TEST_AWS_STREAM"   // the name of a stream, which others may use meanwhile
	liveConsumer = "PENSTOCK_TEST_AWS_CONSUMER" // reads with this consumer, which stays registered
	liveReshard  = "PENSTOCK_TEST_AWS_RESHARD"  // "yes" doubles the stream's shards, and halves them again
)

// TestLive is the one test that talks to AWS: when it is asked to.
func TestLive(t *testing.T) {
	t.Parallel()
	stream := os.Getenv(liveStream)
	if stream == "" {
		t.Skipf("SKIPPED: nothing runs against AWS. Set %s to the name of a stream of yours; docs/en/kinesis.md says what that costs", liveStream)
	}
	connection := awshttp.NewBuildableClient()
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(connection))
	if err != nil {
		t.Fatal(err)
	}
	transport := connection.GetTransport()
	t.Cleanup(transport.CloseIdleConnections)
	cfg.HTTPClient = &http.Client{Transport: transport}
	w := &world{
		t: t, wall: true, on: remote{t, aws.NewFromConfig(cfg), 5 * time.Second}, readers: 2, next: 1,
		source: &Source{Stream: stream, Region: cfg.Region, Start: Latest(), Consumer: os.Getenv(liveConsumer)},
	}
	w.test(func(w *world) {
		l := &live{w: w, run: rand.Text()}
		began := time.Now()
		w.start()
		if !w.until(time.Minute, func() bool { return len(w.held()) > 0 }) {
			t.Fatalf("nothing was assigned, error %v", w.problem())
		}
		l.round()
		w.checkpoint()
		w.kill()
		l.put() // while it is down
		w.start()
		l.arrive()
		if os.Getenv(liveReshard) == "yes" {
			l.reshard()
		}
		l.round()
		t.Logf("%d records were read of %s in %s", l.written, stream, time.Since(began).Round(time.Second))
	})
}

// live tells its records from those that others write into the same stream.
type live struct {
	w       *world
	run     string
	written int
}

// put writes 50 records of a few bytes.
func (l *live) put() {
	records := make([]kinesistest.Record, 50)
	for i := range records {
		records[i] = kinesistest.Record{PartitionKey: fmt.Sprintf("%s-%d", l.run, i%7), Data: fmt.Appendf(nil, "%d", l.written+i)}
	}
	_, err := l.w.on.Put(l.w.stream(), records...)
	l.w.must(err)
	l.written += len(records)
}

func (l *live) own() (own []sdk.Record) {
	for _, r := range l.w.all() {
		if strings.HasPrefix(string(r.Key), l.run+"-") {
			own = append(own, r)
		}
	}
	return own
}

// arrive waits for what was written, and for a moment more in which nothing may come twice.
func (l *live) arrive() {
	l.w.t.Helper()
	if !l.w.until(2*time.Minute, func() bool { return len(l.own()) >= l.written }) {
		l.w.t.Fatalf("%d of %d records, error %v", len(l.own()), l.written, l.w.problem())
	}
	l.w.run(time.Minute)
	l.w.each(l.own(), 0, l.written)
}

func (l *live) round() {
	l.w.t.Helper()
	l.put()
	l.arrive()
}

// reshard writes and reads while the stream grows, and when it has the size again that it had.
func (l *live) reshard() {
	l.w.t.Helper()
	open := len(l.w.held())
	for _, shards := range []int{2 * open, open} {
		l.put()
		l.w.must(l.w.on.Reshard(l.w.stream(), shards))
		l.round()
	}
}
