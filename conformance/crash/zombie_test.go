package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const zombieTopic = "zombie"

// toKafka is a sink section.
func toKafka(address, more string) string {
	return fmt.Sprintf("kafka: {brokers: [%q], topic: %s%s}", address, zombieTopic, more)
}

// committedRecords reads the topic as a consumer of committed records does, up to its end.
func committedRecords(t *testing.T, address string) []string {
	t.Helper()
	ctx := t.Context()
	admin := kadminOf(t, address)
	decided(t, admin)
	ends, err := admin.ListEndOffsets(ctx, zombieTopic)
	if err != nil {
		t.Fatal(err)
	}
	left, from := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		from[o.Partition] = kgo.NewOffset().AtStart()
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{zombieTopic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var values []string
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return values
}

func kadminOf(t *testing.T, address string) *kadm.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// open are the transactions of the topic that are not decided.
func open(ctx context.Context, admin *kadm.Client) (int, error) {
	committed, err := admin.ListCommittedOffsets(ctx, zombieTopic)
	if err != nil {
		return 0, err
	}
	ends, err := admin.ListEndOffsets(ctx, zombieTopic)
	if err != nil {
		return 0, err
	}
	n := 0
	ends.Each(func(o kadm.ListedOffset) {
		if c, ok := committed.Lookup(o.Topic, o.Partition); !ok || c.Offset < o.Offset {
			n++
		}
	})
	return n, nil
}

func decided(t *testing.T, admin *kadm.Client) {
	t.Helper()
	eventually(t, "no transaction is open", func() bool {
		n, err := open(t.Context(), admin)
		return err == nil && n == 0
	})
}

// copyTree copies the state of a job, as whoever moves it to another machine does.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// A process that is stopped is taken for dead: its job goes on elsewhere, from a copy of its state. When it wakes up it finds that
// its transactions are not its own any more, changes nothing, and ends with an error.
func TestAZombieChangesNothingInKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	const splits, perSplit = 2, 20_000
	address, stop, err := startBroker(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := kadminOf(t, address).CreateTopic(t.Context(), 2, 1, nil, zombieTopic); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, state := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "state")
	madeUp(t, file, state, toKafka(address, ""), splits, perSplit)
	zombie := launch(t, file)
	eventually(t, "there is a third checkpoint", func() bool { return filepath.Base(newestCheckpoint(state)) >= "chk-00000003" })
	zombie.signal(t, syscall.SIGSTOP)

	elsewhere, copied := filepath.Join(dir, "elsewhere.yaml"), filepath.Join(dir, "copied")
	copyTree(t, state, copied)
	madeUp(t, elsewhere, copied, toKafka(address, ""), splits, perSplit)
	if p := launch(t, elsewhere); p.code(t) != 0 {
		t.Fatalf("the job that goes on elsewhere:\n%s", p.said)
	}
	eachOnce(t, committedRecords(t, address), splits, perSplit)

	zombie.signal(t, syscall.SIGCONT)
	if code := zombie.code(t); code != 1 || !strings.Contains(zombie.said.String(), "another") {
		t.Errorf("the zombie ended with %d:\n%s", code, zombie.said)
	}
	eachOnce(t, committedRecords(t, address), splits, perSplit)
}

// A process that is stopped for longer than its transactions may last wakes up to find them aborted. It says so and goes on from
// its last checkpoint, or, when a checkpoint had counted on one of them, ends and says what is lost. It never goes on in silence.
func TestAStopLongerThanTheTransactionTimeoutIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	const splits, perSplit = 2, 20_000
	address, stop, err := startBroker(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	admin := kadminOf(t, address)
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, zombieTopic); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, state := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "state")
	madeUp(t, file, state, toKafka(address, ", transaction_timeout: 2s"), splits, perSplit)
	p := launch(t, file)
	eventually(t, "there is a third checkpoint", func() bool { return filepath.Base(newestCheckpoint(state)) >= "chk-00000003" })
	p.signal(t, syscall.SIGSTOP)
	decided(t, admin) // the broker has aborted what was open
	p.signal(t, syscall.SIGCONT)
	if code := p.code(t); code != 0 {
		if !strings.Contains(p.said.String(), "aborted the transaction before its commit") {
			t.Errorf("it ended with %d:\n%s", code, p.said)
		}
		return
	}
	eachOnce(t, committedRecords(t, address), splits, perSplit)
}

// A process that is stopped and wakes up again while nobody took its place goes on as if nothing had been.
func TestAStoppedProcessGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	const splits, perSplit = 2, 20_000
	dir := t.TempDir()
	file, state, out := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "state"), filepath.Join(dir, "out")
	madeUp(t, file, state, "file: {path: "+out+", format: raw}", splits, perSplit)
	first := launch(t, file)
	eventually(t, "there is a third checkpoint", func() bool { return filepath.Base(newestCheckpoint(state)) >= "chk-00000003" })
	first.signal(t, syscall.SIGSTOP)
	second := launch(t, file)
	if code := second.code(t); code != 1 || !strings.Contains(second.said.String(), fmt.Sprintf("in use by process %d", first.Process.Pid)) {
		t.Errorf("a second process ended with %d:\n%s", code, second.said)
	}
	first.signal(t, syscall.SIGCONT)
	if code := first.code(t); code != 0 {
		t.Fatalf("the first process ended with %d:\n%s", code, first.said)
	}
	eachOnce(t, committedValues(t, out), splits, perSplit)
}

// A copy of the state does not help a second process to the output of the first, also while that does not answer.
func TestACopiedStateDoesNotWriteIntoTheSameOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	const splits, perSplit = 2, 20_000
	dir := t.TempDir()
	file, state, out := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "state"), filepath.Join(dir, "out")
	sink := "file: {path: " + out + ", format: raw}"
	madeUp(t, file, state, sink, splits, perSplit)
	first := launch(t, file)
	eventually(t, "there is a third checkpoint", func() bool { return filepath.Base(newestCheckpoint(state)) >= "chk-00000003" })
	first.signal(t, syscall.SIGSTOP)
	elsewhere, copied := filepath.Join(dir, "elsewhere.yaml"), filepath.Join(dir, "copied")
	copyTree(t, state, copied)
	madeUp(t, elsewhere, copied, sink, splits, perSplit)
	second := launch(t, elsewhere)
	if code := second.code(t); code != 1 || !strings.Contains(second.said.String(), fmt.Sprintf("in use by another process, %d", first.Process.Pid)) {
		t.Errorf("a second process ended with %d:\n%s", code, second.said)
	}
	first.signal(t, syscall.SIGCONT)
	if code := first.code(t); code != 0 {
		t.Fatalf("the first process ended with %d:\n%s", code, first.said)
	}
	eachOnce(t, committedValues(t, out), splits, perSplit)
}
