package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMain lets the test binary serve the broker and the stream, as the program does.
func TestMain(m *testing.M) {
	if served, err := serve(os.Args); served {
		if err != nil {
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	_ = os.RemoveAll(builtIn) // nothing when nothing was built
	os.Exit(code)
}

// The short form of `make crash`.
func TestKilledAtRandomMomentsTheOutputIsExactlyOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills the command; left out with -short")
	}
	for name, form := range map[string]struct {
		rescale bool
		sink    string
	}{
		"same parallelism": {false, fileSink}, "other parallelism after each kill": {true, fileSink},
		"into kafka": {false, kafkaSink}, "into kafka, other parallelism after each kill": {true, kafkaSink},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := crash(t.Context(), config{
				sink: form.sink, kills: 8, records: 200_000, partitions: 4, rate: 60_000, rescale: form.rescale, interval: 50 * time.Millisecond,
				shortest: 20 * time.Millisecond, longest: 250 * time.Millisecond, seed: uint64(time.Now().UnixNano()), say: t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
			if r.kills < 4 {
				t.Errorf("only %d of 8 kills happened before the topic was read up", r.kills)
			}
		})
	}
}

func TestTheVerifierSeesEveryKindOfWrongOutput(t *testing.T) {
	line := func(s string) string { return s + "\n" }
	good := line(`{"partition":0,"offset":0,"value":"0/0"}`) + line(`{"partition":0,"offset":2,"value":"0/1"}`) + line(`{"partition":1,"offset":0,"value":"1/0"}`)
	for name, c := range map[string]struct {
		content string
		want    report
	}{
		"good":     {good, report{files: 1, records: 3}},
		"lost":     {line(`{"partition":0,"offset":0,"value":"0/0"}`), report{files: 1, records: 1, lost: 2}},
		"repeated": {good + line(`{"partition":1,"offset":4,"value":"1/0"}`), report{files: 1, records: 4, repeated: 1}},
		"aborted":  {good + line(`{"partition":1,"offset":4,"value":"aborted"}`), report{files: 1, records: 4, aborted: 1}},
		"unknown":  {good + line(`{"partition":1,"offset":4,"value":"1/7"}`), report{files: 1, records: 4, unknown: 1}},
		"disorder": {
			line(`{"partition":0,"offset":2,"value":"0/1"}`) + line(`{"partition":0,"offset":0,"value":"0/0"}`) + line(`{"partition":1,"offset":0,"value":"1/0"}`),
			report{files: 1, records: 3, disorder: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"a.jsonl": c.content, ".hidden.jsonl": good} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := verify(dir, 2, 3)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "torn.jsonl"), []byte(`{"partition":0,"off`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(dir, 2, 3); err == nil {
		t.Error("a torn line is not noticed")
	}
}
