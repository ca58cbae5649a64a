package jobfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/catalog"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/jobfile"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/engine"
)

const minimal = `job: orders
source:
  kafka:
    brokers: ["${BROKER}"]
    topics: [orders]
sink: {file: {path: out}}
checkpoint: {dir: state}
`

func load(t *testing.T, text string, overrides ...string) (*jobfile.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return jobfile.Load(jobfile.Request{
		Path: path, Overrides: overrides, Catalog: catalog.Shipped(io.Discard),
		Lookup: func(name string) (string, bool) { return "127.0.0.1:9092", name == "BROKER" },
	})
}

func TestASinkMayRefuseTheCheckpointInterval(t *testing.T) {
	text := strings.Replace(minimal, "sink: {file: {path: out}}", "sink: {kafka: {brokers: [a:1], topic: t, transaction_timeout: 30s}}", 1)
	if _, err := load(t, text, "checkpoint.interval=10s"); err != nil {
		t.Error(err)
	}
	_, err := load(t, text, "checkpoint.interval=20s")
	problems, ok := errors.AsType[option.Problems](err)
	if !ok || len(problems) != 1 || problems[0].Position.Line != 6 || !strings.Contains(err.Error(), "transaction_timeout") || !strings.Contains(err.Error(), "40s") {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	f, err := load(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	j := f.Job
	if j.Name != "orders" || j.Parallelism != 1 || j.Checkpoint.Dir != "state" || j.Checkpoint.Interval != engine.DefaultInterval || j.Checkpoint.Keep != engine.DefaultKeep || f.Bounded {
		t.Errorf("got %+v", j)
	}
	if !reflect.DeepEqual(*j.Options, engine.DefaultOptions()) {
		t.Errorf("options %+v", *j.Options)
	}
	if f, err = load(t, minimal, "source.kafka.stop=latest"); err != nil || !f.Bounded {
		t.Errorf("a stop makes no bounded job: %v", err)
	}
}

// What is shown as a default can be written into a job file, and changes nothing.
func TestShownDefaultsAreValid(t *testing.T) {
	var overrides []string
	add := func(prefix string, options []*option.Option) {
		for _, o := range options {
			if o.Default == "" || strings.Contains(o.Default, "(") {
				continue
			}
			overrides = append(overrides, prefix+o.Name+"="+o.Default)
		}
	}
	c := catalog.Shipped(io.Discard)
	sections := jobfile.Sections(c)
	add("", sections.Options)
	for _, o := range sections.Options {
		if o.Group != nil {
			add(o.Name+".", o.Group.Options)
		}
	}
	source, _ := c.Source("kafka")
	group, _ := source.New()
	add("source.kafka.", group.Options)
	group, _ = c.Sinks[0].New()
	add("sink.file.", group.Options)
	if len(overrides) < 40 {
		t.Fatalf("only %d defaults", len(overrides))
	}
	f, err := load(t, minimal, overrides...)
	if err != nil {
		if problems, ok := errors.AsType[option.Problems](err); ok {
			for _, p := range problems {
				t.Error(p)
			}
		}
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*f.Job.Options, engine.DefaultOptions()) {
		t.Errorf("options %+v", *f.Job.Options)
	}
	plain, err := load(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.Job.Sink, plain.Job.Sink) {
		t.Errorf("sink %+v, want %+v", f.Job.Sink, plain.Job.Sink)
	}
}

// Every setting of the engine is an option of the runtime section.
func TestEverySetting(t *testing.T) {
	have := map[string]bool{}
	for _, o := range jobfile.Sections(catalog.Shipped(io.Discard)).Options {
		if o.Name == "runtime" {
			for _, inner := range o.Group.Options {
				have[inner.Name] = true
			}
		}
	}
	for _, s := range engine.Settings(new(engine.DefaultOptions())) {
		if !have[s.Name] {
			t.Errorf("%s (%T) is missing", s.Name, s.Value)
		}
	}
}

func TestWhere(t *testing.T) {
	f, err := load(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err       error
		path, at  string
		variables string
	}{
		{fmt.Errorf("source kafka: %w", kafka.ErrUnreachable), "source.kafka.brokers", ":4:14", "BROKER"},
		{kafka.ErrLogin, "source.kafka.sasl", ":4:5", ""},
		{kafka.ErrTopicMissing, "source.kafka.topics", ":5:13", ""},
		{&file.Error{Op: "write", Path: "out", Err: io.ErrShortWrite}, "sink.file.path", ":6:21", ""},
		{checkpoint.ErrLocked, "checkpoint.dir", ":7:19", ""},
		{io.EOF, "", "", ""},
	} {
		path, at, variables, ok := f.Where(c.err)
		if path != c.path || ok != (c.path != "") || ok && !strings.HasSuffix(at.String(), c.at) || strings.Join(variables, " ") != c.variables {
			t.Errorf("%v: %s at %v (%t), from %q; want %s at %s", c.err, path, at, ok, variables, c.path, c.at)
		}
	}
}

func TestNoJobFile(t *testing.T) {
	if _, err := load(t, strings.Repeat("#", 2<<20)); err == nil || !strings.Contains(err.Error(), "no job file") {
		t.Errorf("got %v", err)
	}
	if _, err := load(t, ""); err == nil {
		t.Error("an empty file passed")
	} else if problems, ok := errors.AsType[option.Problems](err); !ok || len(problems) != 4 {
		t.Errorf("got %v", err)
	}
}

// Whatever a file says, it is a job that the engine takes, or there is a list of what is wrong and where.
func FuzzLoad(f *testing.F) {
	f.Add(minimal, "")
	f.Add(minimal, "source.kafka.start={timestamp: 2026-01-02T03:04:05Z}")
	f.Add("job: a\nparallelism: 3\nsource: {fake: {splits: 2, records: 10}}\nsink: {blackhole: {}}\ncheckpoint: {dir: s, interval: 1s, keep: 1}\nruntime: {allowlist: [fake]}\n", "runtime.mailbox_commands=9")
	f.Add("job: k\nsource: {kinesis: {stream: s, region: eu-west-1, start: {sequence_numbers: {shardId-000000000000: '1'}}}}\nsink: {kafka: {brokers: ['a:1'], topic: t}}\ncheckpoint: {dir: s}\n", "sink.kafka.topic=${BROKER}")
	path := filepath.Join(f.TempDir(), "job.yaml")
	f.Fuzz(func(t *testing.T, text, override string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := jobfile.Request{
			Path: path, Catalog: catalog.Shipped(io.Discard),
			Lookup: func(name string) (string, bool) { return "127.0.0.1:9092", name == "BROKER" },
		}
		if override != "" {
			r.Overrides = []string{override}
		}
		job, err := jobfile.Load(r)
		if problems, ok := errors.AsType[option.Problems](err); ok {
			for _, p := range problems {
				if p.Text == "" || p.Position.Line < 0 || p.Position.Column < 0 {
					t.Errorf("a problem without words or place: %+v", p)
				}
			}
			return
		}
		if err == nil {
			err = job.Job.Validate()
		}
		if err != nil && len(text) < 1<<20 {
			t.Errorf("what is wrong has no place in the file: %v", err)
		}
	})
}
