package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// awaitOutput returns when the job has committed something.
func awaitOutput(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for lines(t, dir) == 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no output")
		}
	}
}

func TestCheckpoints(t *testing.T) {
	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	for i := range 3000 {
		if err := broker.Produce(t.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 2), Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
		if i > 100 {
			break
		}
	}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	job := write(t, "job.yaml", fmt.Sprintf("job: orders\nparallelism: 2\nsource: {kafka: {brokers: [%q], topics: [orders]}}\nsink: {file: {path: %q}}\ncheckpoint: {dir: %q, interval: 20ms}\n",
		broker.Addrs()[0], filepath.Join(dir, "out"), state))
	c := newCommand(t).start("run", job)
	c.waitFor(c.err, "new job")
	awaitOutput(t, dir) // before that the partitions may still wait for their readers
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 {
		t.Fatalf("code %d, %s", code, c.err)
	}

	code, stdout, stderr := do(t, "checkpoints", "ls", state)
	if code != 0 || !strings.HasPrefix(stdout, "CHECKPOINT  KIND") || !strings.Contains(stdout, "  complete  ") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = do(t, "checkpoints", "ls", state, "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); code != 0 || err != nil || len(list) == 0 {
		t.Fatalf("code %d, %v, %s", code, err, stdout)
	}

	code, stdout, stderr = do(t, "checkpoints", "show", state)
	want := regexp.MustCompile(`^checkpoint \d+ \([\w, ]+\)  \S+Z  complete  [\d.]+ (µs|ms|s)  [\d.]+ (B|KiB)
job orders  \d+ records? committed to sink file
lane \w+  capability kafka 1\.0\.0 \(digest [0-9a-f]{4}\.\.\.\)  parallelism 2
SPLIT +READER  POSITION +(LEADER EPOCH +)?STATE
orders-0 +[01] +offset \d+ +(\S+ +)?active
orders-1 +[01] +offset \d+ +(\S+ +)?active
$`)
	if code != 0 || !want.MatchString(stdout) {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = do(t, "checkpoints", "show", state, fmt.Sprint(list[0]["checkpoint"]), "--json")
	var view map[string]any
	if err := json.Unmarshal([]byte(stdout), &view); code != 0 || err != nil || view["connector"] != "kafka" {
		t.Errorf("code %d, %v, %s", code, err, stdout)
	}
	newest := list[len(list)-1]["file"].(string)
	if code, stdout, _ := do(t, "checkpoints", "show", newest); code != 0 || !strings.HasPrefix(stdout, "checkpoint ") {
		t.Errorf("code %d, %s", code, stdout)
	}

	data, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(newest, data[:len(data)-3], 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := do(t, "checkpoints", "show", state); code != 1 || !strings.Contains(stderr, newest+" is truncated") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, stdout, _ := do(t, "checkpoints", "ls", state); code != 0 || !strings.Contains(stdout, "  truncated  ") {
		t.Errorf("code %d, %s", code, stdout)
	}
	if code, _, stderr := do(t, "run", job); code != 1 || !strings.Contains(stderr, newest+" is truncated") || !strings.Contains(stderr, "--restore PATH") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, _, stderr := do(t, "checkpoints", "show", state, "99999"); code != 1 || !strings.Contains(stderr, "no checkpoint 99999") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, _, stderr := do(t, "checkpoints", "ls", filepath.Join(dir, "nowhere")); code != 1 || !strings.Contains(stderr, "nowhere") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// The state directory serves one process at a time, and one job.
func TestStateDirectoryIsTaken(t *testing.T) {
	dir := t.TempDir()
	c := newCommand(t).start("run", fakeJob(t, dir), "--set", "source.fake.records_per_second=100")
	c.waitFor(c.err, "new job")
	if code, _, stderr := do(t, "run", fakeJob(t, dir)); code != 1 || !strings.Contains(stderr, "in use by") || !strings.Contains(stderr, "Check checkpoint.dir in ") {
		t.Errorf("code %d, %s", code, stderr)
	}
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 {
		t.Errorf("code %d, %s", code, c.err)
	}
	if code, _, stderr := do(t, "run", fakeJob(t, dir), "--set", "job=other"); code != 1 || !strings.Contains(stderr, "other") {
		t.Errorf("code %d, %s", code, stderr)
	}
}
