package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// fakeJob is a job that needs nothing.
func fakeJob(t *testing.T, dir string) string {
	return write(t, "job.yaml", fmt.Sprintf(`job: numbers
parallelism: 2
source: {fake: {splits: 4, records_per_split: 2500}}
sink: {file: {path: %q}}
checkpoint: {dir: %q, interval: 50ms}
`, filepath.Join(dir, "out"), filepath.Join(dir, "state")))
}

// lines counts the lines of committed files.
func lines(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "out", "[^.]*"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(b, []byte("\n"))
	}
	return n
}

func TestRunBounded(t *testing.T) {
	dir := t.TempDir()
	job := fakeJob(t, dir)
	code, _, stderr := do(t, "run", job)
	if code != 0 || !strings.Contains(stderr, "numbers  finished: 10,000 records committed") {
		t.Fatalf("code %d, %s", code, stderr)
	}
	if n := lines(t, dir); n != 10_000 {
		t.Errorf("%d lines", n)
	}
	code, _, stderr = do(t, "run", job)
	if code != 0 || !strings.Contains(stderr, "had finished before: 10,000 records") || lines(t, dir) != 10_000 {
		t.Errorf("again: code %d, %s", code, stderr)
	}
}

func TestStopAndGoOn(t *testing.T) {
	dir := t.TempDir()
	job := fakeJob(t, dir)
	slow := []string{"run", job, "--set", "source.fake.records_per_second=500"}
	c := newCommand(t).start(slow...)
	c.waitFor(c.err, `new job: fake to file, parallelism 2 \(checkpoint 1\)`)
	c.signals <- syscall.SIGTERM
	if code := c.end(); code != 0 {
		t.Fatalf("code %d, %s", code, c.err)
	}
	c.waitFor(c.err, `savepoint \d+ written, [\d,]+ records? committed\. Go on with: penstock run .*job\.yaml --set source.fake.records_per_second=500`)
	first := lines(t, dir)
	if first >= 10_000 {
		t.Fatalf("%d lines", first)
	}
	code, _, stderr := do(t, "run", job)
	if code != 0 || !strings.Contains(stderr, "numbers  restored from savepoint ") || lines(t, dir) != 10_000 {
		t.Errorf("code %d, %d lines, %s", code, lines(t, dir), stderr)
	}
}

// stalled is a standard output that nobody reads.
type stalled struct {
	once     sync.Once
	entered  chan struct{}
	released chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.entered) })
	<-s.released
	return len(p), nil
}

// A savepoint cannot be had while a sink is stuck: the second signal ends the command all the same.
func TestTwoSignalsAbandon(t *testing.T) {
	c := newCommand(t)
	pipe := &stalled{entered: make(chan struct{}), released: make(chan struct{})}
	var seconds atomic.Int64
	c.stdout, c.now = pipe, func() time.Time { return time.Unix(seconds.Add(1), 0) }
	dir := t.TempDir()
	c.start("run", fakeJob(t, dir), "--set", "sink={stdout: {}}", "--set", "checkpoint.interval=1h")
	<-pipe.entered
	c.signals <- os.Interrupt
	c.waitFor(c.err, "stopping: taking a savepoint")
	c.signals <- os.Interrupt
	code := c.end()
	lock, err := os.Open(filepath.Join(dir, "state", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	close(pipe.released)
	// Exit would end what is left of the job. Here it lets go of its directory when it can.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if code != 130 || !regexp.MustCompile(`abandoned; it (begins anew|goes on from .+) with: `).MatchString(c.err.String()) {
		t.Errorf("code %d, %s", code, c.err)
	}
}

// Some supervisors signal the process and then its group: that is one wish to stop.
func TestAnEchoOfTheSignalIsNotTheSecond(t *testing.T) {
	c := newCommand(t)
	c.now = func() time.Time { return time.Unix(0, 0) }
	c.start("run", fakeJob(t, t.TempDir()), "--set", "source.fake.records_per_second=10")
	c.waitFor(c.err, "new job: ")
	c.signals <- os.Interrupt
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 || !strings.Contains(c.err.String(), "savepoint") {
		t.Errorf("code %d, %s", code, c.err)
	}
}

func TestStdoutSink(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := do(t, "run", fakeJob(t, dir), "--set", "sink={stdout: {format: raw}}")
	if code != 0 || strings.Count(stdout, "\n") != 10_000 {
		t.Errorf("code %d, %d lines, %s", code, strings.Count(stdout, "\n"), stderr)
	}
}

func TestMetrics(t *testing.T) {
	c := newCommand(t).start("run", fakeJob(t, t.TempDir()), "--set", "source.fake.records_per_second=100", "--metrics", "127.0.0.1:0")
	base := c.waitFor(c.err, `metrics at (http://\S+)/metrics`)
	c.waitFor(c.err, "new job: ")
	get := func(path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, `job="numbers"`) {
		t.Errorf("/metrics: %d, %.300s", code, body)
	}
	if code, body := get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d, %s", code, body)
	}
	if code, body := get("/readyz"); code != 200 {
		t.Errorf("/readyz: %d, %s", code, body)
	}
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 {
		t.Errorf("code %d, %s", code, c.err)
	}
	if code, _, stderr := do(t, "run", fakeJob(t, t.TempDir()), "--metrics", "nonsense"); code != 2 || !strings.Contains(stderr, "--metrics") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestTerminal(t *testing.T) {
	c := newCommand(t)
	c.columns = 200
	c.start("run", fakeJob(t, t.TempDir()), "--set", "source.fake.records_per_second=2000")
	c.waitFor(c.err, `\r\x1b\[Knumbers  [\d,]+ records  [\d,]+/s`)
	c.signals <- os.Interrupt
	last := regexp.MustCompile(`(\n|\r\x1b\[K)numbers  savepoint `) // on a line of its own, or in the place of a status line
	if code := c.end(); code != 0 || !last.MatchString(c.err.String()) {
		t.Errorf("code %d, %q", code, c.err)
	}
}

func TestFailures(t *testing.T) {
	kafka := func(brokers string) string {
		dir := t.TempDir()
		return write(t, "job.yaml", fmt.Sprintf("job: orders\nsource:\n  kafka:\n    brokers: [%q]\n    topics: [nothere]\nsink: {file: {path: %q}}\ncheckpoint: {dir: %q}\n",
			brokers, filepath.Join(dir, "out"), filepath.Join(dir, "state")))
	}
	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{"other": 1}})
	for name, c := range map[string]struct {
		job  string
		want []string
	}{
		"nobody listens": {kafka("127.0.0.1:1"), []string{"orders: source kafka: ", "127.0.0.1:1", "refused", "Check source.kafka.brokers in ", "job.yaml:4:14."}},
		"no topic":       {kafka(broker.Addrs()[0]), []string{"orders: source kafka: ", "nothere", "other", "Check source.kafka.topics in ", "job.yaml:5:13."}},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := do(t, "run", c.job)
			if code != 1 || strings.Contains(stderr, "goroutine") {
				t.Errorf("code %d, %s", code, stderr)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("no %q in %s", w, stderr)
				}
			}
		})
	}
	t.Run("output in the way", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "out"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := do(t, "run", fakeJob(t, dir))
		if code != 1 || !strings.Contains(stderr, "Check sink.file.path in ") || !strings.Contains(stderr, "stands in the way") {
			t.Errorf("code %d, %s", code, stderr)
		}
	})
}

func TestKafkaToFiles(t *testing.T) {
	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{"orders": 3}})
	for i := range 900 {
		if err := broker.Produce(t.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 3), Value: fmt.Appendf(nil, "order %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	job := write(t, "job.yaml", fmt.Sprintf(`job: orders
parallelism: 2
source: {kafka: {brokers: ["${BROKER}"], topics: [orders], stop: latest}}
sink: {file: {path: %q, compression: none}}
checkpoint: {dir: %q, interval: 50ms}
`, filepath.Join(dir, "out"), filepath.Join(dir, "state")))
	c := newCommand(t)
	c.environment = map[string]string{"BROKER": broker.Addrs()[0]}
	if code := c.start("run", job).end(); code != 0 || lines(t, dir) != 900 {
		t.Errorf("code %d, %d lines, %s", code, lines(t, dir), c.err)
	}
}

func TestDevKafka(t *testing.T) {
	c := newCommand(t).start("dev", "kafka", "--port", "0", "--topic", "rides:2", "--topic", "other", "--records", "10", "--rate", "1000")
	address := c.waitFor(c.out, `Broker on (\S+)\.`)
	c.waitFor(c.out, `Topics: "rides" \(2 partitions\), "other" \(1 partition\); 10 records in "rides"`)
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("rides"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := 0; n < 50; {
		n += client.PollFetches(t.Context()).NumRecords()
	}
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 {
		t.Errorf("code %d, %s", code, c.err)
	}
}

func TestDemo(t *testing.T) {
	c := newCommand(t)
	c.processEnviron = append(os.Environ(), asCommand+"=1")
	dir := filepath.Join(t.TempDir(), "demo")
	if code := c.start("demo", "--dir", dir, "--records", "20000").end(); code != 0 {
		t.Fatalf("code %d\n%s%s", code, c.out, c.err)
	}
	for _, want := range []string{"Killing the job (SIGKILL).", "it goes on from checkpoint ", "Done: 20,000 records, each exactly once, in order per partition."} {
		if !strings.Contains(c.out.String(), want) {
			t.Errorf("no %q in\n%s", want, c.out)
		}
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := do(t, "demo", "--dir", foreign); code != 1 || !strings.Contains(stderr, "not from an earlier demo") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestRestoreModes(t *testing.T) {
	dir := t.TempDir()
	job := fakeJob(t, dir)
	c := newCommand(t).start("run", job, "--set", "source.fake.records_per_second=2000")
	c.waitFor(c.err, "new job: ")
	c.signals <- os.Interrupt
	if code := c.end(); code != 0 {
		t.Fatalf("code %d, %s", code, c.err)
	}
	savepoint := c.waitFor(c.err, `savepoint (\d+) written`)
	if code, _, stderr := do(t, "run", job); code != 0 || !strings.Contains(stderr, "finished: 10,000 records") {
		t.Fatalf("code %d, %s", code, stderr)
	}

	files, err := filepath.Glob(filepath.Join(dir, "state", "*"+savepoint+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	code, _, stderr := do(t, "run", job, "--restore", files[0], "--set", "checkpoint.dir="+elsewhere, "--set", "sink={blackhole: {check: continuity}}")
	// The savepoint may hold prepared output, which only the sink that prepared it can commit.
	if code != 0 && !strings.Contains(stderr, "prepared output") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, _, stderr := do(t, "run", job, "--restore", filepath.Join(dir, "nothing")); code != 1 || !strings.Contains(stderr, "nothing") {
		t.Errorf("code %d, %s", code, stderr)
	}
	before := lines(t, dir)
	if code, _, stderr := do(t, "run", job, "--restore", "none"); code != 1 || !strings.Contains(stderr, "records would be written twice") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if code, _, stderr := do(t, "run", job, "--restore", "none", "--set", "sink.file.repeat=true"); code != 0 || lines(t, dir) != before+10_000 {
		t.Errorf("code %d, %d lines, %s", code, lines(t, dir), stderr)
	}

	// Without the state nobody knows what the output already holds.
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = do(t, "run", job)
	if code != 1 || !strings.Contains(stderr, "records would be written twice") || !strings.Contains(stderr, "Check sink.file.path in ") {
		t.Errorf("code %d, %s", code, stderr)
	}
	if n := lines(t, dir); n != before+10_000 {
		t.Errorf("%d lines", n)
	}
}
