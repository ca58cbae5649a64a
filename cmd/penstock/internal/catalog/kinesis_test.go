package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kinesis"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

func TestEveryOptionOfKinesisIsDocumentedWithItsDefault(t *testing.T) {
	t.Parallel()
	rows := documented(t, "../../../../docs/en/kinesis.md", "source options")
	group, _ := kinesisSource().New()
	options := make(map[string]string)
	defaults("", group.Options, options)
	for name, value := range options {
		if row, ok := rows[name]; !ok {
			t.Errorf("%s is not documented", name)
		} else if row != value {
			t.Errorf("%s: the default is %q and documented as %q", name, value, row)
		}
	}
	for name := range rows {
		if _, ok := options[name]; !ok {
			t.Errorf("%s is documented and no option", name)
		}
	}
}

func decodeKinesis(text string) (*kinesis.Source, error) {
	s := new(kinesis.Source)
	group := option.Group{Options: kinesisOptions(s), Check: func(c *option.Checker) { c.Report(s.Validate()) }}
	_, err := option.Decode(option.Input{File: "job.yaml", Data: []byte("{" + text + "}"), Lookup: func(string) (string, bool) { return "", false }}, group)
	return s, err
}

func TestKinesisOptionsReachTheSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]func(*kinesis.Source) bool{
		"stream: s": func(s *kinesis.Source) bool { return s.Stream == "s" && s.Consumer == "" },
		"stream_arn: 'arn:aws:kinesis:eu-west-1:123456789012:stream/orders'": func(s *kinesis.Source) bool { return strings.HasSuffix(s.StreamARN, "/orders") },
		"stream: s, start: latest, latest_by: scan, stop: {timestamp: 2026-01-02}": func(s *kinesis.Source) bool {
			return s.Start.String() == "latest" && s.LatestBy == kinesis.ByScan && s.Stop.String() == "timestamp 2026-01-02T00:00:00Z"
		},
		"stream: s, start: {sequences: {a: '17'}}": func(s *kinesis.Source) bool { return s.Start.String() == "sequences a:17" },
		"stream: s, start: {timestamp: 1000}":      func(s *kinesis.Source) bool { return s.Start.String() == "timestamp 1970-01-01T00:00:01Z" },
		"stream: s, efo: {consumer: c}, aggregated: true, filter_hash_keys: true": func(s *kinesis.Source) bool {
			return s.Consumer == "c" && s.Aggregated && s.FilterHashKeys
		},
		"stream: s, credentials: {profile: p, role_arn: 'arn:aws:iam::123456789012:role/r', external_id: e}": func(s *kinesis.Source) bool {
			return s.Credentials == kinesis.Credentials{Profile: "p", RoleARN: "arn:aws:iam::123456789012:role/r", ExternalID: "e"}
		},
	} {
		if s, err := decodeKinesis(text); err != nil || !want(s) {
			t.Errorf("%s: %+v, error %v", text, s, err)
		}
	}
}

func TestKinesisOptionsThatDoNotFitAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                          "stream",
		"stream: s, start: latset":                  `did you mean "latest"?`,
		"stream: s, stop: trim_horizon":             "stop: ",
		"stream: s, start: {time: 1}":               "is not a start",
		"stream: s, stop: {sequences: {a: 1}}":      "is not a stop",
		"stream: s, start: {timestamp: soon}":       "is not a time",
		"stream: s, start: {sequences: {a: b}}":     "is no sequence number",
		"stream: s, start: {}":                      "is empty",
		"stream: s, efo: {}":                        "consumer is missing",
		"stream: s, discovery_interval: 1ms":        "discovery_interval",
		"stream: s, credentials: {external_id: e}":  "external_id belongs to a role_arn",
		"stream: s, filter_hash_keys: true":         "only aggregates are filtered",
		"stream: s, endpoint: 'localhost:4567'":     "endpoint",
		"stream: s, start: {timestamp: 1, x: 2}":    "has one entry",
		"stream: s, credentials: {role_arn: admin}": "is no ARN of a role",
	} {
		_, err := decodeKinesis(text)
		problems, ok := err.(option.Problems) //nolint:errorlint // what Decode documents
		if !ok || !slices.ContainsFunc(problems, func(p option.Problem) bool { return strings.Contains(fmt.Sprint(p), want) }) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestKinesisErrorsAreBlamedOnAnOption(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{&kinesis.ServiceError{Option: "region"}, "region"},
		{&kinesis.ConfigError{Option: "credentials"}, "credentials"},
		{kinesis.ErrLost, "on_lost"},
		{kinesis.ErrPosition, "start"},
		{kinesis.ErrConsumer, "efo"},
		{kinesis.ErrRecreated, "stream"},
		{os.ErrNotExist, ""},
	} {
		if got := kinesisBlame(fmt.Errorf("wrapped: %w", test.err)); got != test.want {
			t.Errorf("%v is blamed on %q, want %q", test.err, got, test.want)
		}
	}
}

func TestTheLineageOfACheckpointIsShown(t *testing.T) {
	t.Parallel()
	top := lineage.New(lineage.Config{Parallelism: 3, Identity: []sdk.Attribute{{Name: "stream", Value: "orders"}}})
	scan := lineage.Scan{Shards: []lineage.Shard{{ID: "a", Closed: true}, {ID: "b", Parents: []string{"a"}}, {ID: "c", Parents: []string{"a", "x"}}}}
	if _, err := top.Apply(top.Begin(), scan, func(lineage.Shard) lineage.Initial { return lineage.Initial{Position: lineage.FromTrimHorizon()} }); err != nil {
		t.Fatal(err)
	}
	top.Open()
	if err := top.Assigned("a", 0); err != nil {
		t.Fatal(err)
	}
	rows, err := kinesisLineage(top.Encode(), []sdk.SplitID{"a"})
	if err != nil {
		t.Fatal(err)
	}
	want := "[{a [] completed []} {b [a] active [from trim horizon]} {c [a x] active [from trim horizon]} {x [] completed [before the start]}]"
	if got := fmt.Sprint(rows); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := kinesisLineage(sdk.VersionedBytes{Version: 9}, nil); err == nil {
		t.Error("no error for a version that nobody knows")
	}
}
