//go:build unix

package kafka

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

// benchBroker starts a broker process and returns its addresses.
func benchBroker(b *testing.B, size int) []string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), brokerBytes+"="+strconv.Itoa(size), "GOGC=400")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close() // which ends the process
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(line), ",")
}

// BenchmarkIngest compares, against a broker in a process of its own, a loop on the bare client with the managed reader behind
// a reader loop and a sink goroutine. Both look at every field of every record. cpu-ns/record is the processor time of this
// process, the figure to compare: wall time depends on who else uses the machine.
func BenchmarkIngest(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			addrs := benchBroker(b, size)
			source := &Source{Brokers: addrs, Topics: []string{"bench"}}
			b.Run("path=raw", func(b *testing.B) { measure(b, size, func() { rawLoop(b, source, b.N) }) })
			b.Run("path=managed", func(b *testing.B) { measure(b, size, func() { managedLoop(b, source, b.N) }) })
		})
	}
}

func measure(b *testing.B, size int, run func()) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := processorTime(b)
	run()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/record")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// sum looks at what a sink looks at.
type sum struct {
	records int
	bytes   int
	offsets int64
	newest  time.Time
}

func rawLoop(b *testing.B, source *Source, n int) {
	d := source.withDefaults()
	partitions := make(map[int32]kgo.Offset)
	for p := range int32(benchPartitions) {
		partitions[p] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(d.Brokers...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"bench": partitions}),
		kgo.FetchIsolationLevel(d.Isolation.fetchLevel()),
		kgo.FetchMaxPartitionBytes(int32(d.FetchMaxPartitionBytes)),
		kgo.FetchMaxBytes(int32(d.FetchMaxBytes)),
	)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var s sum
	for s.records < n {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatal(err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				s.records++
				s.bytes += len(r.Key) + len(r.Value) + len(r.Headers)
				s.offsets += r.Offset
				s.newest = r.Timestamp
			}
		})
	}
}

// batches is an output that collects a turn into a batch, as the engine's does.
type batches struct {
	turn  *sdk.Turn
	batch *sdk.Batch
}

func (o *batches) Emit(rec sdk.Record) bool {
	o.batch.Append(&rec)
	o.turn.Consume(1, rec.Size())
	return true
}

func (o *batches) EmitView(v sdk.View, from int) (int, bool) {
	n := min(v.Len()-from, o.turn.Records())
	if n == 0 || o.turn.Bytes() == 0 {
		return 0, true
	}
	o.turn.Consume(n, o.batch.AppendView(v, from, from+n))
	return n, true
}

func (o *batches) FinishSplit(sdk.Split) {}

func managedLoop(b *testing.B, source *Source, n int) {
	ctx := newLent()
	r, err := source.NewReader(ctx)
	if err != nil {
		b.Fatal(err)
	}
	splits := make([]Split, benchPartitions)
	for p := range splits {
		splits[p] = Split{Topic: "bench", Partition: int32(p), Epoch: NoEpoch, Stop: NoStop}
	}
	if err := r.AddSplits(splits); err != nil {
		b.Fatal(err)
	}
	const credit = 4
	full, empty := make(chan *sdk.Batch, credit), make(chan *sdk.Batch, credit)
	for range credit {
		empty <- new(sdk.Batch)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var s sum
		for batch := range full {
			for r := range batch.All() {
				s.records++
				s.bytes += len(r.Key) + len(r.Value) + len(r.Headers)
				s.offsets += r.Offset
				s.newest = r.Time
			}
			batch.Reset()
			empty <- batch
		}
	}()
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: 5 * time.Millisecond}, time.Now, nil)
	out := &batches{turn: turn}
	for taken := 0; taken < n; {
		out.batch = <-empty
		turn.Restart()
		status, err := r.Poll(turn, out)
		if err != nil {
			b.Fatal(err)
		}
		taken += out.batch.Len()
		full <- out.batch
		if status == sdk.NothingAvailable {
			<-ctx.doorbell
		}
	}
	close(full)
	<-done
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}
