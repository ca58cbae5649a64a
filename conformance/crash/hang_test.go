package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
)

// processorTime is what this process has used so far.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// eventually asks until it is so. The deadline only turns a hang into a failure.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// hungInterval is that of the job whose broker hangs.
const hungInterval = 100 * time.Millisecond

// A broker that hangs (its process is stopped) keeps no control waiting: checkpoints and savepoints are taken meanwhile, nothing
// spins, and a cancel ends the job. When the broker goes on, so does the job.
func TestAHungBrokerHoldsUpNoControl(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker process; left out with -short")
	}
	var broker *exec.Cmd
	address, stop, err := startBroker(t.Context(), "", func(c *exec.Cmd) { broker = c })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	const partitions, records = 4, 20_000
	if err := fill(t.Context(), []string{address}, partitions, records); err != nil {
		t.Fatal(err)
	}
	sink, taken := blackhole.New(blackhole.Order), make(chan struct{}, 1)
	h, err := engine.Start(t.Context(), engine.Job{
		Name: "hung", Parallelism: 2, Sink: sink,
		Source:     engine.From(&kafka.Source{Brokers: []string{address}, Topics: []string{topic}, Start: kafka.Earliest()}),
		Checkpoint: engine.Checkpoint{Dir: t.TempDir(), Interval: hungInterval},
		Listener: engine.Listener{CheckpointDone: func(*protocol.Manifest, time.Duration) {
			select {
			case taken <- struct{}{}:
			default:
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "everything is read", func() bool { return sink.Totals().Records == records })

	if err := broker.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before, began := processorTime(t), time.Now()
	for range 20 {
		if _, err := h.Savepoint(t.Context()); err != nil {
			t.Errorf("savepoint while the broker hangs: %v", err)
		}
	}
	for range 10 { // a second of the job's own, for something that spins to show
		select {
		case <-taken:
		case <-time.After(2 * time.Minute):
			t.Fatal("no checkpoint while the broker hangs")
		}
	}
	if used, over := processorTime(t)-before, time.Since(began); used > over/2 {
		t.Errorf("the job used %s of processor time in %s although there was nothing to do", used, over)
	}
	if err := broker.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := more(t.Context(), []string{address}, partitions); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job reads on when the broker does", func() bool { return sink.Totals().Records == records+partitions })

	if err := broker.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Process.Signal(syscall.SIGCONT) }() // so that it can be stopped
	h.Cancel()
	if res, err := h.Wait(t.Context()); err != nil || res.Outcome != engine.Cancelled {
		t.Errorf("cancelled while the broker hangs: %+v, %v", res, err)
	}
}

// A second process on the same state directory is refused by name, and the first one is not disturbed.
func TestASecondProcessOnTheStateDirectoryIsRefusedByName(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command; left out with -short")
	}
	dir := t.TempDir()
	address, stop, err := startBroker(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := fill(t.Context(), []string{address}, 1, 10); err != nil {
		t.Fatal(err)
	}
	penstock := dir + "/penstock"
	if err := build(t.Context(), penstock); err != nil {
		t.Fatal(err)
	}
	file := dir + "/job.yaml"
	text := fmt.Sprintf("job: twice\nsource: {kafka: {brokers: [%q], topics: [%s]}}\nsink: {blackhole: {}}\ncheckpoint: {dir: %s/state}\n", address, topic, dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first := exec.CommandContext(t.Context(), penstock, "run", file)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(first.Process.Kill(), first.Wait()) }()
	eventually(t, "the first process has a checkpoint", func() bool { return newestCheckpoint(dir+"/state") != "" })
	out, err := exec.CommandContext(t.Context(), penstock, "run", file).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("the second process: %v", err)
	}
	if want := fmt.Sprintf("in use by process %d", first.Process.Pid); !bytes.Contains(out, []byte(want)) {
		t.Errorf("it says %q, want %q in it", out, want)
	}
}
