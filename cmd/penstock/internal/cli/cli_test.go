package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/cli"
)

// asCommand makes the test binary be the penstock command, for what starts this program again.
const asCommand = "PENSTOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Main(context.Background(), cli.Process{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Signals: signals, Executable: os.Executable,
	}))
}

// output is a stream that a test can wait on.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	grew chan struct{}
}

func newOutput() *output { return &output{grew: make(chan struct{}, 1)} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b)
	select {
	case o.grew <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// command is one command line, running inside of the test.
type command struct {
	t              *testing.T
	out, err       *output
	signals        chan os.Signal
	done           chan int
	environment    map[string]string
	columns        int
	stdin          io.Reader
	processEnviron []string
	stdout         io.Writer // instead of out
	now            func() time.Time
}

func newCommand(t *testing.T) *command {
	return &command{t: t, out: newOutput(), err: newOutput(), signals: make(chan os.Signal, 2), done: make(chan int, 1), stdin: strings.NewReader("")}
}

func (c *command) start(args ...string) *command {
	var stdout io.Writer = c.out
	if c.stdout != nil {
		stdout = c.stdout
	}
	go func() {
		c.done <- cli.Main(c.t.Context(), cli.Process{
			Args: args, Stdin: c.stdin, Stdout: stdout, Stderr: c.err, Signals: c.signals, ErrColumns: c.columns, Now: c.now,
			Lookup:     func(name string) (string, bool) { v, ok := c.environment[name]; return v, ok },
			Executable: os.Executable, Environment: c.processEnviron,
		})
	}()
	return c
}

const patience = 60 * time.Second

// end waits for the exit code.
func (c *command) end() int {
	c.t.Helper()
	select {
	case code := <-c.done:
		return code
	case <-time.After(patience):
		c.t.Fatalf("the command did not end; it printed\n%s%s", c.out, c.err)
		return -1
	}
}

// waitFor waits until one of the streams matches, and returns the first group.
func (c *command) waitFor(o *output, pattern string) string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		if m := re.FindStringSubmatch(o.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-o.grew:
		case code := <-c.done:
			if m := re.FindStringSubmatch(o.String()); m != nil {
				c.done <- code
				return m[len(m)-1]
			}
			c.t.Fatalf("ended with %d before %q:\n%s%s", code, pattern, c.out, c.err)
		case <-deadline:
			c.t.Fatalf("no %q in\n%s%s", pattern, c.out, c.err)
		}
	}
}

// do runs a command line to its end.
func do(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := newCommand(t).start(args...)
	return c.end(), c.out.String(), c.err.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValidate(t *testing.T) {
	path := write(t, "bad.yaml", `job: x
paralelism: 2
source:
  kafka:
    brokers: "not-a-list"
    topics: ["t"]
    start: latset
sink:
  file: {path: ./o, format: jsno}
checkpoint: {dir: ./s, interval: 5 parsecs}
`)
	code, _, stderr := do(t, "validate", path)
	want := strings.ReplaceAll(`F:2:1: paralelism: unknown field (did you mean "parallelism"?)
F:5:14: source.kafka.brokers: "not-a-list" is not a list (write ["not-a-list"])
F:7:12: source.kafka.start: "latset" is not a start (earliest, latest, {timestamp: 2026-01-02T03:04:05Z}, {offsets: {topic: {0: 17}}}, {committed: {group: name}}; did you mean "latest"?)
F:9:29: sink.file.format: "jsno" is not a known format (jsonl, raw; did you mean "jsonl"?)
F:10:34: checkpoint.interval: "5 parsecs" is not a duration (for example 500ms, 5s, 1m30s)
5 problems
`, "F:", path+":")
	if code != 2 || stderr != want {
		t.Errorf("code %d, got\n%swant\n%s", code, stderr, want)
	}
}

const good = `job: x
source: {kafka: {brokers: ["127.0.0.1:9092"], topics: [t]}}
sink: {blackhole: {}}
checkpoint: {dir: ./s}
`

func TestValidateGood(t *testing.T) {
	path := write(t, "good.yaml", good)
	code, stdout, stderr := do(t, "validate", path)
	if code != 0 || stdout != path+": job x is fine: kafka to blackhole\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

// Each line is one override of a good file and the problem it makes.
func TestValidateConnectors(t *testing.T) {
	path := write(t, "good.yaml", good)
	for _, c := range []struct{ set, want string }{
		{`source.kafka.pattern=x.*`, `source.kafka.pattern: given beside topics`},
		{`source.kafka.topics=[]`, `source.kafka.topics: none given`},
		{`source.kafka.topics=[a, a]`, `source.kafka.topics: "a" is named twice`},
		{`source.kafka.brokers=[nohost]`, `source.kafka.brokers: "nohost": not of the form host:port`},
		{`source.kafka.start=`, `source.kafka.start: has no value`},
		{`source.kafka.start={timestamp: yesterday}`, `source.kafka.start.timestamp: "yesterday" is not a time`},
		{`source.kafka.start={offsets: {t: {0: -1}}}`, `source.kafka.start.offsets.t.0: "-1" is not an offset`},
		{`source.kafka.start={offsets: {t: {x: 1}}}`, `"x" is not a partition number`},
		{`source.kafka.start={ofsets: {}}`, `did you mean "offsets"?`},
		{`source.kafka.stop=earliest`, `source.kafka.stop: "earliest" is not a stop (latest, `},
		{`source.kafka.isolation=read_comitted`, `did you mean "read_committed"?`},
		{`source.kafka.discovery_interval=1ms`, `source.kafka.discovery_interval: 1ms: at least 1s`},
		{`source.kafka.fetch_max_wait=1h`, `source.kafka.fetch_max_wait: 1h0m0s: from 10ms to 30s`},
		{`sink={file: {}}`, `sink.file: path is missing: Directory to write to`},
		{`sink.file={path: x}`, `a job has one sink`},
		{`runtime.poll_records=0`, `runtime.poll_records: "0" is not in the range`},
		{`runtime.poll_soft=2s`, `runtime.poll_soft: 2s is longer than poll_hard`},
		{`runtime.lane=c`, `runtime.lane: "c" is not a known lane (auto, a, b`},
		{`exchange=keyd`, `did you mean "keyed"?`},
		{`job=a/b`, `job: "a/b" is not a job name`},
		{`checkpoint=`, `checkpoint: dir is missing`},
		{`checkpoint.keep=0`, `checkpoint.keep: "0" is not in the range 1 to 10000`},
		{`parallelism=${NONE}`, `environment variable NONE is not set`},
	} {
		code, _, stderr := do(t, "validate", path, "--set", c.set)
		if code != 2 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "\n1 problem\n") {
			t.Errorf("--set %s: code %d, got\n%swant %s", c.set, code, stderr, c.want)
		}
	}
	for _, set := range []string{
		`source.kafka.start={timestamp: 2026-01-02T03:04:05Z}`, `source.kafka.start={timestamp: 2026-01-02}`, `source.kafka.start={offsets: {t: {0: 17, 1: 0}}}`,
		`source.kafka.discovery_interval=0`, `source.kafka.stop=latest`, `runtime.mailbox_bytes=8MiB`, `runtime=`, `sink={stdout: }`,
	} {
		if code, _, stderr := do(t, "validate", path, "--set", set); code != 0 {
			t.Errorf("--set %s: code %d, %s", set, code, stderr)
		}
	}
}

func TestConnectors(t *testing.T) {
	code, stdout, _ := do(t, "connectors")
	for _, name := range []string{"kafka", "fake", "file", "stdout", "blackhole"} {
		if code != 0 || !strings.Contains(stdout, " "+name+" ") {
			t.Errorf("%s is missing in\n%s", name, stdout)
		}
		if code, stdout, _ := do(t, "connectors", name); code != 0 || !strings.Contains(stdout, "Delivery: ") {
			t.Errorf("%s: code %d, %s", name, code, stdout)
		}
	}
	if code, stdout, _ := do(t, "connectors", "runtime"); code != 0 || !strings.Contains(stdout, "mailbox_bytes  (size, default 4MiB)") {
		t.Errorf("runtime: code %d, %s", code, stdout)
	}
	if code, stdout, _ := do(t, "connectors", "job"); code != 0 || !strings.Contains(stdout, "checkpoint.dir  (text, required)") {
		t.Errorf("job: code %d, %s", code, stdout)
	}
	code, stdout, _ = do(t, "connectors", "--markdown")
	for _, want := range []string{"## source kafka\n", "| `isolation` | read_committed \\| read_uncommitted | `read_committed` | ", "| `path` | text | required | "} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("no %q in %s", want, stdout)
		}
	}
	if code, _, stderr := do(t, "connectors", "kafak"); code != 2 || !strings.Contains(stderr, `did you mean "kafka"?`) {
		t.Errorf("kafak: code %d, %s", code, stderr)
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, 0, "penstock "},
		{nil, 0, "penstock validate job.yaml"},
		{[]string{"rnu"}, 2, `unknown command "rnu"`},
		{[]string{"run"}, 2, "accepts 1 arg"},
		{[]string{"run", "/does/not/exist"}, 2, "no such file"},
		{[]string{"validate", "/"}, 2, "is no job file"},
		{[]string{"run", "--nope", "x"}, 2, "unknown flag"},
		{[]string{"dev", "kafka", "--topic", "x:0"}, 2, "want NAME:PARTITIONS"},
	} {
		code, stdout, stderr := do(t, c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%q: code %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}
