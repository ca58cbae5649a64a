package kinesis

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// E15: each page is served twice, because the first answer is lost on its way.
func TestAnIteratorThatIsSentTwiceMovesThePositionOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(s *Source) { s.MaxRecords = 4 }, func(w *world) {
		var polls atomic.Int64
		w.source.Client = append(w.source.Client, func(o *aws.Options) {
			connection := http.RoundTripper(http.DefaultTransport)
			if made, ok := o.HTTPClient.(*http.Client); ok {
				connection = made.Transport
			}
			o.HTTPClient = &http.Client{Transport: forgetful{connection, func(operation string) bool {
				return strings.HasSuffix(operation, ".GetRecords") && polls.Add(1)%2 == 1
			}}}
		})
		w.put(0, 20)
		w.start()
		w.arrive(20)
		w.run(5 * time.Second)
		w.checkpoint()
		w.each(w.committed(), 0, 20)
		if n := polls.Load(); n < 10 {
			w.t.Errorf("%d polls: nothing was shown", n)
		}
		if p := w.last.splits[0][0].Position; p.Kind != lineage.AfterSequence || p.Sequence != w.committed()[19].Sequence {
			w.t.Errorf("the position is %s", p)
		}
	})
}

// E40: children wait for a shard that is not read to its end, and are unassigned in a checkpoint. Shards with greater names come and go meanwhile. A list is always the
// whole of it, so nothing is behind a cursor.
func TestAShardThatIsKnownAndUnassignedInACheckpointIsNotSkippedForOnesBehindIt(t *testing.T) {
	t.Parallel()
	inWorld(t, 2, func(s *Source) { s.DiscoveryInterval = time.Second }, func(w *world) {
		w.put(0, 40)
		hang := w.srv.Inject(kinesistest.Fault{Operation: "GetRecords", Shard: firstShard, Times: kinesistest.Always, Effect: kinesistest.Throttle()})
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 2 })
		lower, upper, err := w.srv.Split("orders", firstShard)
		w.must(err)
		a, b, err := w.srv.Split("orders", "shardId-000000000001")
		w.must(err)
		w.put(40, 40)
		w.until(time.Minute, func() bool { return len(w.held()) == 3 })
		_, _, err = w.srv.Split("orders", a)
		w.must(err)
		w.put(80, 40)
		w.until(time.Minute, func() bool { return len(w.held()) == 4 })
		w.checkpoint()
		if held := w.held(); slices.Contains(held, lower) || slices.Contains(held, upper) || !slices.Contains(held, b) {
			t.Fatalf("%v are held; %s and %s were to wait", held, lower, upper)
		}
		w.kill()
		hang.Remove()
		w.start()
		w.arrive(120)
		w.run(5 * time.Second)
		w.checkpoint()
		w.each(w.committed(), 0, 120)
	})
}

// E53: an attempt that does not know that it is over reads on, beyond its successor and to the end of the shard.
func TestOnlyThePositionOfTheAttemptThatCountsIsStoredWhileAZombieReadsTheSameShard(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		w.put(0, 10)
		w.start()
		w.arrive(10)
		w.checkpoint()
		zombie := w.tasks[0]
		w.tasks = nil
		w.must(w.enum.Close())
		w.start()
		w.must(w.tasks[0].r.(sdk.Pauser).PauseOrResume([]sdk.SplitID{firstShard}, nil))
		w.put(10, 50)
		_, _, err := w.srv.Split("orders", firstShard)
		w.must(err)
		w.put(60, 20)
		for range 300 {
			if _, err := zombie.poll(); err != nil {
				t.Fatal(err)
			}
			w.run(100 * time.Millisecond)
		}
		if n := len(zombie.out); n != 50 || len(zombie.finished) != 1 {
			t.Fatalf("the zombie read %d records and finished %d shards: nothing was shown", n, len(zombie.finished))
		}
		w.checkpoint()
		if held, n := w.held(), len(w.all()); n != 10 || !slices.Equal(held, []string{firstShard}) {
			t.Errorf("%d records, %v are held: what the zombie did counts", n, held)
		}
		w.kill()
		w.must(zombie.r.Close())
		w.start()
		w.arrive(80)
		w.run(5 * time.Second)
		w.checkpoint()
		w.each(w.committed(), 0, 80)
	})
}
