package kinesis

import (
	"net/http"
	"testing"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
)

// onKinesalite runs a test with an emulator that is fast, names no children, and has a clock of its own, on the wall.
func onKinesalite(t *testing.T, shards int, test func(w *world, k *kinesisserver.Kinesalite)) {
	t.Helper()
	k := kinesisserver.StartKinesalite(t)
	stream := k.CreateStream(t, "orders", int32(shards))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	client := k.Client(func(o *aws.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	w := &world{t: t, wall: true, on: remote{t, client, 20 * time.Millisecond}, readers: 1, next: 1, source: &Source{
		Stream: stream, Region: "us-east-1", Credentials: Credentials{AccessKeyID: "kinesisserver", SecretAccessKey: "kinesisserver"},
		Endpoint: k.Endpoint(), PollInterval: 200 * time.Millisecond, DiscoveryInterval: time.Second,
	}}
	w.test(func(w *world) { test(w, k) })
}

// putMany writes as many as the service takes in one request, again and again.
func (w *world) putMany(from, n int) {
	w.t.Helper()
	const most = 500
	for ; n > 0; from, n = from+most, n-most {
		w.put(from, min(n, most))
	}
}

// An answer never names the children of a shard, and its end is an empty page of its own: the list of shards has to tell.
func TestVolumeThroughASplitAndAMergeThatNoAnswerTellsOf(t *testing.T) {
	t.Parallel()
	const half = 10_000
	onKinesalite(t, 3, func(w *world, _ *kinesisserver.Kinesalite) {
		w.readers = 2
		w.putMany(0, half)
		w.start()
		shards, err := w.on.(remote).shards(w.stream())
		w.must(err)
		_, _, err = w.on.Split(w.stream(), *shards[0].ShardId)
		w.must(err)
		_, err = w.on.Merge(w.stream(), *shards[1].ShardId, *shards[2].ShardId)
		w.must(err)
		w.putMany(half, half)
		w.until(time.Minute, func() bool { return len(w.all()) >= half })
		w.run(time.Second) // until the ends of the parents are seen
		w.checkpoint()     // which the children wait for
		w.kill()
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) >= 2*half })
		w.checkpoint()
		w.each(w.committed(), 0, 2*half)
	})
}

func TestIteratorsThatExpireInAnEmulatorAreMadeAnew(t *testing.T) {
	t.Parallel()
	onKinesalite(t, 2, func(w *world, k *kinesisserver.Kinesalite) {
		w.put(0, 50)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) == 50 })
		w.must(k.Advance(t.Context(), 301*time.Second))
		w.put(50, 50)
		w.until(time.Minute, func() bool { return len(w.all()) == 100 })
		w.each(w.all(), 0, 100)
		if n, _ := w.metrics.get("expired_iterators"); n == 0 {
			w.t.Error("no iterator expired")
		}
	})
}

// What was trimmed is gone for a job that begins, and a shard that holds nothing any more is read on from where it is.
func TestRecordsThatAnEmulatorTrimmedAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	onKinesalite(t, 2, func(w *world, k *kinesisserver.Kinesalite) {
		w.put(0, 50)
		w.must(k.Advance(t.Context(), 25*time.Hour))
		w.put(50, 50)
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) >= 50 })
		w.each(w.all(), 50, 50)
	})
}
