package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	manyPartitions = 1000
	// firstRecordWithin is how long after the start of the process its first record may be on its standard output.
	firstRecordWithin = time.Second
	// restarts is how often it is tried. A machine that is busy with something else only makes it slower, so one that is fast enough is proof.
	restarts = 5
)

// A job with a thousand partitions is killed with SIGKILL and started again, and the time is taken from the start of the process.
func TestARestartAfterSIGKILLReadsItsFirstRecordOfAThousandPartitionsWithinASecond(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills the command; left out with -short")
	}
	dir := t.TempDir()
	address, stop, err := startBroker(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), manyPartitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	penstock, job := filepath.Join(dir, "penstock"), filepath.Join(dir, "job.yaml")
	if err := build(t.Context(), penstock); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("job: restart\nsource: {kafka: {brokers: [%q], topics: [%s]}}\nsink: {stdout: {format: raw}}\ncheckpoint: {dir: %s/state, interval: 100ms}\n", address, topic, dir)
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := everywhere(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	took := make([]time.Duration, 0, restarts)
	for life := range restarts + 1 {
		first, err := firstRecord(t, penstock, job, filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		if life > 0 { // the first life is no restart
			took = append(took, first)
		}
		if err := everywhere(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("first records after %v", took)
	for _, d := range took {
		if d <= firstRecordWithin {
			return
		}
	}
	t.Errorf("none of %d restarts had a record within %s: %v", restarts, firstRecordWithin, took)
}

// everywhere writes a record to each partition.
func everywhere(ctx context.Context, client *kgo.Client) error {
	records := make([]*kgo.Record, manyPartitions)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i), Value: []byte("record")}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

// firstRecord runs the command until it has shown a record and stored a checkpoint after that, kills it, and returns when the record came.
func firstRecord(t *testing.T, penstock, job, state string) (after time.Duration, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), penstock, "run", job)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		return 0, errors.Join(err, cmd.Wait())
	}
	after = time.Since(began)
	seen := newestCheckpoint(state)
	go func() { _, _ = io.Copy(io.Discard, lines) }() // so that it is not held up; it ends with the process
	eventually(t, "another checkpoint", func() bool { return newestCheckpoint(state) != seen })
	if err := cmd.Process.Kill(); err != nil {
		return 0, err
	}
	_ = cmd.Wait() // killed
	return after, nil
}
