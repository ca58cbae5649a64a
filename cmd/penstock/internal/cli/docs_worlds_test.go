package cli_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

// worlds are the systems that the sessions of a page talk to, and what is replaced in its text so that they do.
var worlds = map[string]func(t *testing.T) *strings.Replacer{"kafka.md": kafkaWorld, "kinesis.md": kinesisWorld}

func kafkaWorld(t *testing.T) *strings.Replacer {
	t.Helper()
	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	var records []*kgo.Record
	for partition, n := range []int{705, 690} {
		for i := range n {
			records = append(records, &kgo.Record{Topic: "orders", Partition: int32(partition), Value: []byte(strconv.Itoa(i))})
		}
	}
	if err := broker.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("127.0.0.1:9092", broker.Addrs()[0])
}

func kinesisWorld(t *testing.T) *strings.Replacer {
	t.Helper()
	srv := kinesistest.Start(t, kinesistest.Options{})
	records := make([]kinesistest.Record, 400)
	for i := range records {
		records[i] = kinesistest.Record{PartitionKey: strconv.Itoa(i), Data: []byte("a ride")}
	}
	if err := srv.CreateStream("rides", 4); err != nil {
		t.Fatal(err)
	}
	_, before := srv.Put("rides", records...)
	shards, err := srv.Shards("rides")
	if err := errors.Join(before, err); err != nil {
		t.Fatal(err)
	}
	_, _, split := srv.Split("rides", shards[0].ID)
	_, merge := srv.Merge("rides", shards[2].ID, shards[3].ID)
	_, after := srv.Put("rides", records...)
	if err := errors.Join(split, merge, after); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("http://127.0.0.1:4567", srv.Endpoint())
}

// TestTheFirstJobOfTheReadme types what the README tells to: its job file, and its commands in order. Only the port is another one, and the
// job ends, which it would not do by itself.
func TestTheFirstJobOfTheReadme(t *testing.T) {
	page := readDoc(t, "../../../../README.md")
	t.Chdir(t.TempDir())
	var job string
	var commands [][]string
	for _, b := range blocks(page) {
		switch {
		case b.language == "yaml" && job == "":
			job = b.body
		case b.language == "sh":
			for line := range strings.Lines(b.body) {
				line, _, _ = strings.Cut(line, " #")
				if args, ok := strings.CutPrefix(line, "bin/penstock "); ok {
					commands = append(commands, arguments(args))
				}
			}
		}
	}
	if len(commands) < 7 || strings.Join(commands[0][:2], " ") != "dev kafka" {
		t.Fatalf("the README has the commands %q", commands)
	}
	broker := newCommand(t).start(append(commands[0], "--port", "0")...)
	address := broker.waitFor(broker.out, `Broker on (\S+)\.`)
	if err := os.WriteFile("job.yaml", []byte(strings.ReplaceAll(job, "127.0.0.1:9092", address)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands[1:] {
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "127.0.0.1:9100", "127.0.0.1:0")
		}
		if args[0] == "run" {
			args = append(args, "--set", "source.kafka.stop=latest")
		}
		if code, stdout, stderr := do(t, args...); code != 0 {
			t.Errorf("penstock %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
	broker.signals <- os.Interrupt
	if code := broker.end(); code != 0 {
		t.Errorf("dev kafka: exit code %d, %s", code, broker.err)
	}
}
