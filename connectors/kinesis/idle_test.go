package kinesis

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

// calls counts what a server was asked, by the server's clock. Requests are observed by many goroutines.
type calls struct {
	mu      sync.Mutex
	from    time.Time // what came before is not counted
	byName  map[string]int
	polls   map[string][]time.Time // of each shard
	refused int
}

func (c *calls) observe(call kinesistest.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.Error != "" && call.Shard != "" { // a consumer that is looked for may be missing
		c.refused++
	}
	if call.Operation == "GetRecords" {
		c.polls[call.Shard] = append(c.polls[call.Shard], call.At)
	}
	if !call.At.Before(c.from) {
		c.byName[call.Operation]++
	}
}

// most is the largest number of polls of one shard within a second.
func (c *calls) most() (most int) {
	for _, at := range c.polls {
		first := 0
		for i := range at {
			for at[i].Sub(at[first]) >= time.Second {
				first++
			}
			most = max(most, i-first+1)
		}
	}
	return most
}

// What docs/en/kinesis.md says of calls, with a thousand shards that nothing is written to.
func TestAThousandIdleShardsAreAllPolledAndCostTheCallsThatAreDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand calls; left out with -short")
	}
	t.Parallel()
	const shards = 1000
	for name, way := range map[string]struct {
		configure       func(*Source)
		settled, window time.Duration
		want            map[string][2]int // from, to
	}{
		"polling": { // 1 s between two polls, a tenth more or less
			func(*Source) {}, 2 * time.Second, 2 * time.Second,
			map[string][2]int{"GetRecords": {shards, shards * 3}, "ListShards": {0, 1}, "DescribeStreamSummary": {0, 1}},
		},
		"slower polling, over two discovery intervals": {
			func(s *Source) { s.PollInterval = 10 * time.Second }, 5 * time.Second, 20 * time.Second,
			map[string][2]int{"GetRecords": {shards, shards * 3}, "ListShards": {1, 3}, "DescribeStreamSummary": {1, 3}},
		},
		"enhanced fan-out, from the start": {fanOut, 0, 20 * time.Second, map[string][2]int{
			"SubscribeToShard": {shards, shards}, "ListShards": {2, 4}, "DescribeStreamSummary": {2, 5}, "DescribeStreamConsumer": {1, 8}, "RegisterStreamConsumer": {1, 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &calls{from: time.Now().Add(way.settled), byName: map[string]int{}, polls: map[string][]time.Time{}}
				srv, err := kinesistest.New(kinesistest.Options{InMemory: true, Observe: seen.observe})
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				if err := srv.CreateStream("orders", shards); err != nil {
					t.Fatal(err)
				}
				w := &world{t: t, srv: srv, on: srv, readers: 2, source: sourceOf(srv), next: 1}
				way.configure(w.source)
				w.start()
				w.run(way.settled + way.window)
				if n := len(w.held()); n != shards {
					t.Errorf("%d shards are assigned, want %d", n, shards)
				}
				w.kill()
				seen.check(t, way.want)
			})
		})
	}
}

func (c *calls) check(t *testing.T, want map[string][2]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%v; at most %d polls of a shard in a second", c.byName, c.most())
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		if n := c.byName[name]; n > want[name][1] {
			t.Errorf("%d calls of %s, want %d to %d", n, name, want[name][0], want[name][1])
		}
	}
	for name := range want {
		if c.byName[name] < want[name][0] {
			t.Errorf("%d calls of %s, want %d to %d", c.byName[name], name, want[name][0], want[name][1])
		}
	}
	if most := c.most(); most > callsPerSecond {
		t.Errorf("a shard was polled %d times in a second, the service allows %d", most, callsPerSecond)
	}
	if c.refused > 0 {
		t.Errorf("%d calls were refused", c.refused)
	}
}
