package cli_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

func TestDevKinesisServesAStreamAndReshardsIt(t *testing.T) {
	t.Parallel()
	typed, lines := io.Pipe()
	c := newCommand(t)
	c.stdin = typed
	c.start("dev", "kinesis", "--port", "0", "--shards", "2", "--records", "10", "--rate", "100", "--consumer", "reader")
	endpoint := c.waitFor(c.out, `Kinesis on (\S+),`)
	client := kinesis.New(kinesis.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: aws.AnonymousCredentials{}})
	list, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("rides")})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Shards) != 2 {
		t.Errorf("%d shards", len(list.Shards))
	}
	for _, step := range []struct{ line, want string }{
		{"split 0", `shardId-000000000002 and shardId-000000000003`},
		{"merge 2 shardId-000000000003", `shardId-000000000004`},
		{"shards 4", `shardId-000000000008 +open +shardId-000000000001`},
		{"shards", `FIRST HASH KEY`},
		{"split 0", `shard shardId-000000000000 of stream rides is closed`},
		{"put 1000000", `want 0 to 50,000`},
		{"advance 5m", `It is \d+`},
		{"advance soon", `want a time`},
		{"what", `(?s)Commands:.*Commands:`},
	} {
		if _, err := fmt.Fprintln(lines, step.line); err != nil {
			t.Fatal(err)
		}
		c.waitFor(c.out, step.want)
	}
	lines.Close() // without a terminal it goes on
	again, err := client.ListShards(t.Context(), &kinesis.ListShardsInput{StreamName: aws.String("rides")})
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Shards) < 5 {
		t.Errorf("%d shards after the commands", len(again.Shards))
	}
	c.signals <- nil
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, c.err)
	}
}

func TestDevKinesisForkedEndsWithItsInput(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.stdin = strings.NewReader("")
	if code := c.start("dev", "kinesis", "--port", "0", "--forked").end(); code != 0 || !strings.HasPrefix(c.out.String(), "http://127.0.0.1:") || strings.Count(c.out.String(), "\n") != 1 {
		t.Errorf("exit code %d, %s", code, c.out)
	}
}

func TestDevKinesisRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, value, want string }{
		{"--shards", "0", "want 1 to 1024"},
		{"--stream", "no name", "want 1 to 128 letters"},
		{"--consumer", "", "want 1 to 128 letters"},
	} {
		if code, _, stderr := do(t, "dev", "kinesis", "--port", "0", c.flag, c.value); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s %q: code %d, %s", c.flag, c.value, code, stderr)
		}
	}
}
