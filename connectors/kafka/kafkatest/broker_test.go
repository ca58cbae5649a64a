package kafkatest

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// offsets reads the partition until it has seen want and returns the offsets, markers left out.
func offsets(t *testing.T, b *Broker, isolation kgo.IsolationLevel, want int64) []int64 {
	t.Helper()
	client, err := kgo.NewClient(append(b.ClientOptions(), kgo.FetchIsolationLevel(isolation), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().At(0)}}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var got []int64
	for len(got) == 0 || got[len(got)-1] < want {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			got = append(got, r.Offset)
		}
	}
	return got
}

func record(value string) *kgo.Record { return &kgo.Record{Topic: "orders", Value: []byte(value)} }

func TestTransactionsAreCommittedAndAborted(t *testing.T) {
	t.Parallel()
	b := Start(t, Options{Topics: map[string]int32{"orders": 1}})
	for _, commit := range []bool{true, false, true} {
		tx, err := b.Begin(t.Context(), record("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Produce(t.Context(), record("b")); err != nil {
			t.Fatal(err)
		}
		end := tx.Abort
		if commit {
			end = tx.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := offsets(t, b, kgo.ReadCommitted(), 7); !slices.Equal(got, []int64{0, 1, 6, 7}) {
		t.Errorf("committed %v", got)
	}
	if got := offsets(t, b, kgo.ReadUncommitted(), 7); !slices.Equal(got, []int64{0, 1, 3, 4, 6, 7}) {
		t.Errorf("uncommitted %v", got)
	}
}

func TestABrokerCanHaveAFixedPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test of this process with itself
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := NewBroker(Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if want := "127.0.0.1:" + strconv.Itoa(port); !slices.Equal(b.Addrs(), []string{want}) {
		t.Errorf("addresses %v, want %s", b.Addrs(), want)
	}
	if taken, err := NewBroker(Options{Port: port}); err == nil {
		taken.Close()
		t.Error("a second broker took the same port")
	}
}

func TestDataSurvivesInADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := NewBroker(Options{Topics: map[string]int32{"orders": 1}, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Produce(t.Context(), record("a"), record("b")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	again := Start(t, Options{DataDir: dir})
	if got := offsets(t, again, kgo.ReadCommitted(), 1); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("read %v", got)
	}
}

func TestALeaderMoveIsNoDataLossToAClientThatWouldReset(t *testing.T) {
	t.Parallel() // the reason for answerEpochs
	b := Start(t, Options{Brokers: 3, Topics: map[string]int32{"orders": 1}})
	if err := b.Produce(t.Context(), record("a"), record("b")); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(append(b.ClientOptions(), kgo.MetadataMinAge(100*time.Millisecond), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().At(0)}}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	read := func(n int) (got []int64) {
		for len(got) < n {
			fetches := client.PollFetches(t.Context())
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			for r := range fetches.RecordsAll() {
				got = append(got, r.Offset)
			}
		}
		return got
	}
	read(2)
	if err := b.Cluster().MoveTopicPartition("orders", 0, (b.Cluster().LeaderFor("orders", 0)+1)%3); err != nil {
		t.Fatal(err)
	}
	if err := b.Produce(t.Context(), record("c")); err != nil {
		t.Fatal(err)
	}
	if got := read(1); got[0] != 2 {
		t.Errorf("after the move: %v", got)
	}
}

func TestABrokerRunsInABubbleWithVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBroker(Options{Port: 9092, Topics: map[string]int32{"orders": 1}, Network: new(kfake.VirtualNetwork)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := b.Produce(t.Context(), record("a")); err != nil {
			t.Fatal(err)
		}
		if got := offsets(t, b, kgo.ReadCommitted(), 0); !slices.Equal(got, []int64{0}) {
			t.Errorf("read %v", got)
		}
	})
}
